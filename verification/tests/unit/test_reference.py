"""The generated reference is complete: it has a row for all that the code itself lists."""

import re
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from contracts.promises import CONTRACTS
from scripts.documentation import reference
from scripts.documentation.reference import http, settings
from scripts.documentation.reference.tables import describe_type, find_fields, table
from shared.messaging.topics import INTERNAL_TOPICS, TOPICS, list_new_topics
from shared.runtime.declarations import load_declarations
from shared.web.openapi import get_methods
from test_support.metric_registry import EXPOSED

CHECKOUT = Path(__file__).parents[3]

DEFAULTS_ELSEWHERE = {
    "HOMETOWN_RUN_DIR": "it depends on the way in which the stack runs",
    "HOMETOWN_CACHE_DIR": "it is in the home folder",
    "COMPOSE_FILE": "Compose has this default",
    "SHUFFLE_PARTITIONS": "as many as cores",
    "TABLE_RECORDS_PER_TRIGGER_MAX": "none, as the example explains",
    "DISK_FOLDERS": "an example of the form",
}
"""Variables whose line in `.env.example` does not have the default of the class, and why."""


def page(name: str) -> str:
    return reference.generate()[f"reference/{name}.md"]


def rows(name: str) -> set[str]:
    """What the first cell of each row of a page has between backticks."""
    return set(re.findall(r"^\| `([^`]+)` \|", page(name), re.MULTILINE))


def test_every_setting_has_a_row() -> None:
    example = (CHECKOUT / ".env.example").read_text()
    listed = set(re.findall(r"^#(\w+)=", example, re.MULTILINE))
    fields = {
        settings.get_variable(each, name, field)
        for each in (*settings.read_classes().values(), *settings.OTHERS.values())
        for name, field in each.model_fields.items()
    }

    assert len(listed) > 50
    assert listed | fields - settings.NO_VARIABLES == rows("settings")


def test_every_process_reads_its_settings_with_a_known_class() -> None:
    processes = {each.name for each in load_declarations().processes}

    assert processes == settings.read_classes().keys()


def test_the_defaults_of_the_example_are_those_of_the_code() -> None:
    declared = settings.read_declared()
    different = {
        name: (value, declared[name].default)
        for group in settings.read_groups()
        for name, value in group.values.items()
        if name in declared and not is_same(value, declared[name].default)
    }

    assert different.keys() == DEFAULTS_ELSEWHERE.keys()


def is_same(written: str, default: str) -> bool:
    try:
        return float(written) == float(default)
    except ValueError:
        return written == default


def test_a_setting_has_its_type_its_bounds_and_its_meaning() -> None:
    [row] = re.findall(r"^\| `HTTP_PORT` .*$", page("settings"), re.MULTILINE)

    assert row == (
        "| `HTTP_PORT` | whole number, at least 1, at most 65535 | `8000` | every process |  |"
    )
    [row] = re.findall(r"^\| `ORDER_TIMEOUT_SECONDS` .*$", page("settings"), re.MULTILINE)
    assert row == (
        "| `ORDER_TIMEOUT_SECONDS` | number, above 0 | `30` | orders-api, orders-relay,"
        " orders-worker | How long an order can wait for the decision on its credit. |"
    )


def test_every_process_and_scope_has_a_row() -> None:
    declared = load_declarations()

    assert rows("processes") == {each.name for each in declared.processes} | declared.scopes.keys()


def test_a_process_has_its_port_its_topics_and_how_it_starts() -> None:
    [worker] = re.findall(r"^\| `users-worker` .*$", page("processes"), re.MULTILINE)
    [canary] = re.findall(r"^\| `canary` .*$", page("processes"), re.MULTILINE)

    assert worker == (
        "| `users-worker` | users-svc | 8021 | `users.v1`, `orders.v1` |  |  | with the others |"
    )
    assert canary.endswith("| users, orders, analytics | on request: `make canary` |")


def test_every_topic_has_a_row() -> None:
    assert rows("topics") == {topic.name for topic in list_new_topics(1)}
    assert rows("topics") > TOPICS.keys() | INTERNAL_TOPICS.keys()


def test_every_event_has_a_section_with_its_fields_and_a_sample() -> None:
    expected = {
        f"{name}.v{contract.public.get_version(name)}"
        for contract in CONTRACTS
        for name in contract.public.names
    }
    sections = page("events").split("\n### ")[1:]

    assert expected <= {section.partition("\n")[0] for section in sections}
    assert [each for each in sections if "| field |" not in each or "```json" not in each] == []


def test_every_route_has_a_section_with_its_scope() -> None:
    apps = {
        "http-users-svc": ["users_svc.api"],
        "http-orders-svc": ["orders_svc.item.api", "orders_svc.order.api"],
        "http-analytics-spark": ["analytics_spark.serving.api"],
        "http-analytics-faust": ["analytics_faust.api"],
    }
    for name, modules in apps.items():
        routes = chain.from_iterable(import_module(module).router.routes for module in modules)
        expected = {
            f"{method} {route.path_format}"
            for route in routes
            if isinstance(route, APIRoute)
            for method in get_methods(route)
        }
        sections = page(name).split("\n## ")[1:]

        assert {section.partition("\n")[0] for section in sections} == expected
        assert [each for each in sections if "Scope: `" not in each] == []


def test_every_service_with_an_api_has_a_page() -> None:
    with_api = {
        f"reference/http-{service.folder}.md"
        for service in load_declarations().services
        if http.API in service.processes
    }

    assert with_api
    assert with_api <= reference.generate().keys()


def test_every_metric_has_a_row() -> None:
    assert rows("metrics") == EXPOSED.keys()


def test_every_verb_has_a_row() -> None:
    makefile = (CHECKOUT / "Makefile").read_text()
    [phony] = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", makefile, re.MULTILINE)

    assert rows("verbs") == {f"make {verb}" for verb in phony.replace("\\\n", " ").split()}


COMPONENTS = {"Line": {"type": "object", "properties": {"quantity": {"type": "integer"}}}}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string", "format": "uuid"}, "uuid"),
        ({"type": "integer", "minimum": 1, "maximum": 9}, "integer, at least 1, at most 9"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string, or null"),
        ({"type": "array", "items": {"type": "string"}}, "array of string"),
        ({"enum": ["a", "b"]}, 'one of `"a"`, `"b"`'),
        ({"$ref": "#/components/schemas/Line"}, "object"),
    ],
)
def test_a_type_is_described_in_words(schema: dict[str, object], words: str) -> None:
    assert describe_type(schema, COMPONENTS) == words


def test_a_field_is_followed_by_those_inside_it() -> None:
    lines = {"type": "array", "items": {"$ref": "#/components/schemas/Line"}}
    schema = {"properties": {"lines": lines}, "required": ["lines"]}

    fields = [(each.name, each.is_required) for each in find_fields(schema, COMPONENTS)]

    assert fields == [("lines", True), ("lines[].quantity", False)]


def test_a_cell_is_one_line_without_a_separator() -> None:
    assert table(["a"], [["b\n | c"]]) == "| a |\n| --- |\n| b \\| c |\n"
