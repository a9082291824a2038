"""The forms of GitHub: issues, pull requests, and who reviews which file."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from scripts.changes import list_tracked
from scripts.documentation.reference.verbs import read_verbs
from shared.runtime.declarations import services_dir

CHECKOUT = services_dir()
GITHUB = CHECKOUT / ".github"
VERBS = read_verbs().keys()
CHOOSER = "config.yml"
"""Where an issue begins; it is no form."""
FORMS = [path for path in sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) if path.name != CHOOSER]
TEXTS = [*FORMS, *GITHUB.glob("pull_request_template.md")]
OWNERS = sorted(GITHUB.glob("CODEOWNERS*"))
"""The example, or what it has become."""

Json = dict[str, Any]
TEXT: Json = {"type": "string", "minLength": 1}
OPTIONS: Json = {"type": "array", "minItems": 1, "uniqueItems": True}


def describe(properties: Json, *required: str) -> Json:
    """Return the schema of an object with these properties and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def describe_element(kind: str, *required: str, **attributes: Json) -> Json:
    return describe(
        {
            "type": {"const": kind},
            "id": {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"},
            "attributes": describe(attributes, *required),
            "validations": describe({"required": {"type": "boolean"}}),
        },
        *("type", "attributes"),
    )


ASKED: Json = {"label": TEXT, "description": TEXT}
WRITTEN: Json = {**ASKED, "placeholder": TEXT, "value": TEXT}
CHOICES = {**ASKED, "options": {**OPTIONS, "items": TEXT}, "multiple": {"type": "boolean"}}
BOXES = {
    **ASKED,
    "options": {
        **OPTIONS,
        "items": describe({"label": TEXT, "required": {"type": "boolean"}}, "label"),
    },
}
FORM = describe(
    {
        "name": TEXT,
        "description": TEXT,
        "title": TEXT,
        "labels": {"type": "array", "items": TEXT},
        "assignees": {"type": "array", "items": TEXT},
        "projects": {"type": "array", "items": TEXT},
        "type": TEXT,
        "body": {
            "type": "array",
            "items": {
                "oneOf": [
                    describe_element("markdown", "value", value=TEXT),
                    describe_element("input", "label", **WRITTEN),
                    describe_element("textarea", "label", **WRITTEN, render=TEXT),
                    describe_element("dropdown", "label", "options", **CHOICES),
                    describe_element("checkboxes", "label", "options", **BOXES),
                ]
            },
            "contains": {"not": {"properties": {"type": {"const": "markdown"}}}},
        },
    },
    *("name", "description", "body"),
)
"""What GitHub's syntax for issue forms allows; it does not show a form that has anything else."""
VALIDATOR = jsonschema_rs.Draft202012Validator(FORM)


def is_shown(form: Any) -> bool:
    return VALIDATOR.is_valid(form) and all(
        len(found) == len({*found}) for found in (list_all(form, "id"), list_all(form, "label"))
    )


def list_all(form: Json, key: str) -> Sequence[str]:
    """Return the ids or the labels of the elements that have one."""
    found = [{**element, **element["attributes"]}.get(key) for element in form["body"]]
    return [each for each in found if each]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_github_shows_each_form(path: Path) -> None:
    assert is_shown(yaml.safe_load(path.read_text())), list(
        VALIDATOR.iter_errors(yaml.safe_load(path.read_text()))
    )


INPUT: Json = {"type": "input", "id": "a", "attributes": {"label": "a"}}
MARKDOWN: Json = {"type": "markdown", "attributes": {"value": "a"}}
DROPDOWN: Json = {"type": "dropdown", "attributes": {"label": "b", "options": ["c", "d"]}}


@pytest.mark.parametrize(
    "body",
    [
        [],
        [MARKDOWN],
        [INPUT, {**DROPDOWN, "type": "choice"}],
        [INPUT, {**DROPDOWN, "attributes": {"label": "b"}}],
        [INPUT, {**DROPDOWN, "attributes": {"label": "b", "options": [True]}}],
        [INPUT, {**DROPDOWN, "attributes": {"label": "b", "options": ["c", "c"]}}],
        [INPUT, {**DROPDOWN, "id": "a"}],
        [INPUT, {**DROPDOWN, "attributes": {**DROPDOWN["attributes"], "label": "a"}}],
        [INPUT, {**DROPDOWN, "id": "b c"}],
        [INPUT, {**DROPDOWN, "validations": {"needed": True}}],
        [INPUT, {**DROPDOWN, "label": "b"}],
    ],
)
def test_a_form_that_github_does_not_show_is_found(body: Sequence[Json]) -> None:
    """The negative control."""
    form = {"name": "Something", "description": "Some"}

    assert is_shown({**form, "body": [MARKDOWN, INPUT, DROPDOWN]})
    assert not is_shown({**form, "body": body})


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_what_a_form_names_exists(path: Path) -> None:
    text = path.read_text()
    named = re.findall(r"\b(?:docs/[a-z/]+(?:\.md)?|[A-Z]+\.md)\b|\.env\.example", text)

    assert {*re.findall(r"\bmake ([a-z-]+)", text)} <= VERBS
    assert [name for name in named if not (CHECKOUT / name).exists()] == []


@pytest.mark.parametrize("path", OWNERS, ids=lambda path: path.name)
def test_each_line_of_the_owners_matches_a_file(path: Path) -> None:
    lines = path.read_text().splitlines()
    patterns = [line.split()[0] for line in lines if line and not line.startswith("#")]
    files = list_tracked(CHECKOUT)

    assert [each for each in patterns if not any(is_owned(file, each) for file in files)] == []


def test_a_line_of_the_owners_that_matches_nothing_is_found() -> None:
    """The negative control."""
    assert is_owned("orders-svc/service.toml", "/*/service.toml")
    assert is_owned("docs/adr/README.md", "/docs/")
    assert is_owned("docs/adr/README.md", "*")
    assert not is_owned("orders-svc/tests/service.toml", "/*/service.toml")
    assert not is_owned("other-docs/README.md", "/docs/")


def is_owned(file: str, pattern: str) -> bool:
    """Return whether a file is below a pattern, which begins at the top if it has a slash."""
    form = re.escape(pattern.strip("/")).replace(r"\*", "[^/]*")
    return re.match(f"{form}(/|$)" if "/" in pattern else f".*{form}", file) is not None
