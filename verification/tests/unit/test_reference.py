"""The reference of the site is complete: nothing that programs read or serve is missing in it."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_settings import BaseSettings

from contracts.asyncapi import HEADERS
from contracts.contract_files import ROOT
from contracts.promises import CONTRACTS
from scripts.changes import CHECKOUT, list_tracked
from scripts.documentation import reference
from scripts.documentation.reference import http, settings
from scripts.openapi import Refusal, list_operations
from shared.messaging.topics import TOPICS, list_new_topics
from shared.runtime.declarations import API, load_declarations, store_url
from shared.web.problems import Problem

ROUTE = re.compile(r"^@router\.(?:get|post|put|patch|delete)\(", re.MULTILINE)
JSON = re.compile(r"^```json\n(.*?)^```", re.DOTALL | re.MULTILINE)
SCHEMAS, SAMPLES = ROOT / "schemas", ROOT / "samples"


def read_page(name: str) -> str:
    return reference.generate()[f"reference/{name}.md"]


def find_entries(text: str) -> set[str]:
    """Return what each list item, and the first cell of each row, has in its first backticks."""
    return set(re.findall(r"^(?:- |\| )`([^`]+)`", text, re.MULTILINE))


def split_page(name: str, mark: str) -> dict[str, str]:
    """Return the text of each section of a page by its title."""
    sections = f"\n{read_page(name)}".split(f"\n{mark}")[1:]
    return {title: text for title, _, text in (each.partition("\n") for each in sections)}


def read_sources(folder: str) -> Iterator[str]:
    for path in (CHECKOUT / folder).glob("src/**/*.py"):
        yield path.read_text()


# Settings


def test_every_setting_has_an_entry() -> None:
    example = (CHECKOUT / ".env.example").read_text()
    listed = set(re.findall(r"^#(\w+)=", example, re.MULTILINE))
    fields = {
        settings.get_variable(each, name, field)
        for _, each in settings.find_classes()
        for name, field in each.model_fields.items()
    }
    addresses = {store_url(name).upper() for name in load_declarations().databases}
    to_change, of_stack = read_page("settings").split("\n## ")[1:]

    assert listed
    assert addresses < fields
    assert find_entries(to_change) == listed
    assert find_entries(of_stack) == fields - settings.NO_VARIABLES - listed


def test_every_class_of_settings_is_found() -> None:
    """Those of packages that another test has loaded, too."""
    sources = {path.partition("/")[0] for path in list_tracked(CHECKOUT)}
    known = {(each.__module__, each.__name__) for _, each in settings.find_classes()}
    loaded = {
        (each.__module__, each.__name__)
        for each in find_subclasses(BaseSettings)
        if is_of_a_package(each.__module__, sources)
    }

    assert known
    assert loaded <= known


def find_subclasses(base: type[BaseSettings]) -> Iterator[type[BaseSettings]]:
    for each in base.__subclasses__():
        yield each
        yield from find_subclasses(each)


def is_of_a_package(module: str, folders: Iterable[str]) -> bool:
    path = module.replace(".", "/")
    return any((CHECKOUT / folder / "src" / f"{path}.py").is_file() for folder in folders)


def test_the_defaults_of_the_example_are_those_of_the_programs() -> None:
    declared = settings.read_declared()
    different = {
        name: (value, declared[name].default)
        for group in settings.read_groups((CHECKOUT / ".env.example").read_text())
        for name, value in group.values.items()
        if name in declared and declared[name].default not in ("", value)
    }

    assert different == {}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "HTTP_PORT",
            "whole number, at least 1, at most 65535; by default `8000`; read by every process.",
        ),
        (
            "DATABASE_READER_ROLE",
            "text; read by every process with a database. The role that `migrate` grants the right"
            " to read facts, and nothing else; None: no role.",
        ),
        ("MAVEN_REPOSITORY_URL", "text; read by `make`."),
        ("HOMETOWN_FETCH_SECONDS_MAX", "number, above 0; by default `600`; read by `make`."),
        ("HOMETOWN_PORTS", "`default`, `free`; by default `default`; read by `make`."),
        ("HOMETOWN_RUN_DIR", "path; by default `.run/processes`; read by `make`."),
        ("HOMETOWN_PORT_USERS_API", "by default `8001`."),
        ("KAFKA_PASSWORD", "secret; read by every process."),
        ("HTTP_CA_FILE", "file that exists; read by every process. Certificates"),
        ("DATABASE_URL", "address; required; read by every process with a database."),
        ("SECRETS_DIR", ""),
    ],
)
def test_a_setting_has_its_type_bounds_default_readers_and_meaning(name: str, words: str) -> None:
    start = f"- `{name}`: " if words else f"- `{name}`."
    [line] = [line for line in read_page("settings").splitlines() if line.startswith(start)]

    assert line.removeprefix(start).startswith(words)


# Topics and events


def test_every_topic_has_an_entry() -> None:
    assert TOPICS
    assert find_entries(read_page("topics")) == {topic.name for topic in list_new_topics(1)}
    for service in load_declarations().services:
        for topic in service.topics.values():
            [row] = re.findall(rf"^\| `{topic.name}` .*$", read_page("topics"), re.MULTILINE)
            assert row.split(" | ")[1:] == [
                service.folder,
                f"`{topic.key}`",
                str(topic.partitions),
                "no limit",
                ", ".join(f"`{name}`" for name in topic.types),
                f"{', '.join(TOPICS[topic.name].readers)} |",
            ]


def test_every_event_is_shown_in_each_version_with_its_fields_and_a_sample() -> None:
    shown = split_page("events", "### ")
    written = [
        f"{name}.v{contract.public.get_version(name)}"
        for contract in CONTRACTS
        for name in contract.public.names
    ]

    assert written
    assert set(written) <= {path.stem for path in SCHEMAS.glob("*/*.json")} == shown.keys()
    for path in SCHEMAS.glob("*/*.json"):
        schema, sample = map(read_json, (path, SAMPLES / path.parent.name / path.name))
        fields = {name for name in find_entries(shown[path.stem]) if not re.search(r"[.\[]", name)}
        assert fields == schema["properties"].keys()
        assert [json.loads(text) for text in JSON.findall(shown[path.stem])] == [sample]
        assert ("no longer written" in shown[path.stem]) == (path.stem not in written)


def test_each_topic_of_events_has_its_writer_its_readers_and_its_key() -> None:
    shown = split_page("events", "## ")
    for service in load_declarations().services:
        for topic in service.topics.values():
            text = shown[topic.name]
            assert f"Written by {service.folder}" in text
            assert f"key of a record is `{topic.key}`" in text
            assert [name for name in TOPICS[topic.name].readers if f"`{name}`" not in text] == []
    assert find_entries(shown["Headers"]) == HEADERS.keys()


def read_json(path: Path) -> Any:
    return json.loads(path.read_text())


# HTTP


def test_every_operation_is_shown() -> None:
    for service in load_declarations().services:
        count = sum(len(ROUTE.findall(text)) for text in read_sources(service.folder))
        if not count:
            assert f"reference/http-{service.folder}.md" not in reference.generate()
            continue
        titles = [name for name in split_page(f"http-{service.folder}", "## ") if " /" in name]

        assert len(titles) == count


def test_every_service_with_an_api_has_a_page() -> None:
    with_api = {
        f"reference/http-{service.folder}.md"
        for service in load_declarations().services
        if API in service.processes
    }

    assert with_api
    assert with_api <= reference.generate().keys()


def test_each_code_of_an_operation_is_shown_with_it_or_with_those_of_all() -> None:
    for folder, document in http.read_documents().items():
        shown = split_page(f"http-{folder}", "## ")
        assert find_entries(shown["Errors"]) >= Problem.model_fields.keys()
        of_all, _, of_changes = shown["Errors"].partition("Any change can also have these:")
        operations = list_operations(document)
        methods = {operation.method for operation in operations}
        assert bool(of_changes) == ("GET" in methods and len(methods) > 1)
        for operation in operations:
            is_change = operation.method != "GET"
            texts = (of_all, of_changes if is_change else "", shown[operation.title])
            found = [refusal for text in texts for refusal in find_refusals(text)]
            assert sorted(found) == sorted(operation.refusals)


def find_refusals(text: str) -> Iterator[Refusal]:
    for status, codes in re.findall(r"^\| ([45]\d\d) [^|]+ \| (.+) \|$", text, re.MULTILINE):
        for code in re.findall(r"`([^`]+)`", codes):
            yield int(status), code


# Verbs


def test_every_verb_has_an_entry() -> None:
    makefile = (CHECKOUT / "Makefile").read_text()
    [phony] = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", makefile, re.MULTILINE)
    verbs = phony.replace("\\\n", " ").split()

    assert find_entries(read_page("verbs")) == {f"make {verb}" for verb in verbs}
