"""How the reference of the site describes settings, topics, operations and schemas."""

from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Gt, Le, Lt, MinLen
from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import (
    AnyHttpUrl,
    BaseModel,
    ConfigDict,
    Field,
    FilePath,
    PostgresDsn,
    SecretStr,
    WithJsonSchema,
)

from scripts.documentation.markdown import join_parts, table
from scripts.documentation.reference import events, http, json_schema, settings, topics
from scripts.documentation.reference.json_schema import DEPTH_MAX, describe_type, find_fields
from scripts.documentation.reference.settings import Group, Setting
from scripts.openapi import Operation, list_operations
from shared.messaging.topics import CHANGELOG_TOPIC, DOMAIN_TOPIC, PASSING_TOPIC
from shared.runtime.declarations import load_declarations
from shared.web.auth import Caller, require_scope
from shared.web.openapi import ETAG, HEADERS_OF_CHANGES, refusals, success

# Settings


def test_a_comment_stands_before_the_settings_that_it_is_about() -> None:
    example = "# Ports of\n# all.\n#A=1\n#B=\n# One\n#C=x y\n\n# Only words.\n\n#D=2\n"

    assert list(settings.read_groups(example)) == [
        Group("Ports of all.", {"A": "1", "B": ""}),
        Group("One", {"C": "x y"}),
        Group("Only words.", {}),
        Group("", {"D": "2"}),
    ]


def test_a_group_is_a_comment_and_a_list() -> None:
    group = Group("Ports.", {"HTTP_PORT": "80", "OTHER": ""})
    declared = {"HTTP_PORT": Setting("HTTP_PORT", "text", is_required=True)}

    assert list(settings.write_group(group, declared)) == [
        *("Ports.", "- `HTTP_PORT`: text; required; by default `80`.\n- `OTHER`.")
    ]


def test_a_setting_of_two_classes_has_the_readers_and_meanings_of_both_once() -> None:
    one = Setting("A", "text", readers=("a",), meanings=("First.",))
    other = Setting("A", "text", readers=("b",), meanings=("Second.",))

    merged = settings.merge(settings.merge(settings.merge(one, other), one), other)

    assert settings.write_settings([merged]) == "- `A`: text; read by a, b. First. Second."


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize(
    ("annotation", "metadata", "words"),
    [
        (float, [Gt(0), Lt(5)], "number, above 0, below 5"),
        (int | None, [Ge(1), Le(9)], "whole number, at least 1, at most 9"),
        (int | str, [], "whole number or text"),
        (Annotated[str, MinLen(2)] | None, [], "text, length at least 2"),
        (Literal["on", ""], [], "`on`, or empty"),
        (Colour, [], "`red`, `blue`"),
        (PostgresDsn, [], "address"),
        (AnyHttpUrl | None, [], "address"),
        (FilePath, [], "file that exists"),
        (Path, [], "path"),
        (timedelta, [], "timedelta"),
    ],
)
def test_the_type_of_a_setting_is_described_in_words(
    annotation: object, metadata: list[object], words: str
) -> None:
    assert settings.describe_type(annotation, metadata) == words


@pytest.mark.parametrize(
    ("default", "words"),
    [(None, ""), (SecretStr(""), ""), (False, "false"), (1234567.0, "1234567"), (0.5, "0.5")],
)
def test_a_default_is_written_as_in_a_variable(default: object, words: str) -> None:
    assert settings.describe_default(default) == words


# Topics


@pytest.mark.parametrize(
    ("configs", "words"),
    [
        (DOMAIN_TOPIC, "no limit"),
        (PASSING_TOPIC, "7 days"),
        (CHANGELOG_TOPIC, "the last value of each key"),
    ],
)
def test_a_retention_is_described_in_words(configs: dict[str, str], words: str) -> None:
    assert topics.describe_retention(configs) == words


# Events


def test_each_version_of_an_event_is_shown_the_newest_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "ROOT", tmp_path)
    for folder in (tmp_path / "schemas" / "a.v1", tmp_path / "samples" / "a.v1"):
        folder.mkdir(parents=True)
        for version in (1, 2, 10):
            (folder / f"sent.v{version}.json").write_text('{"properties": {"a": {}}}')

    parts = list(events.write_event("a.v1", "sent"))

    titles = ["### sent.v1", "### sent.v2", "### sent.v10"]
    assert [part for part in parts if part.startswith("###")] == titles
    assert [bool(part) for part in parts[1::4]] == [True, True, False]


# HTTP


def test_a_code_that_only_some_operations_have_is_shown_with_these() -> None:
    def operation(*codes: str) -> Operation:
        content = {"content": {"x": {"examples": dict.fromkeys(codes)}}}
        responses = {"200": {}, "409": content, "404": {}, "default": content}
        return Operation("GET", "/", {"responses": responses})

    assert http.find_common([operation("a", "b"), operation("b", "c")]) == {(409, "b")}
    assert http.find_common([]) == set()


AFTER: dict[str, Any] = {"type": "string", "description": "The last one."}


class Parcel(BaseModel):
    """What is sent."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"weight": 2}]})

    weight: int = Field(ge=1, description="In grams.")


def test_an_operation_is_shown_as_its_document_describes_it() -> None:
    router = APIRouter()
    scope = next(iter(load_declarations().scopes.values()))

    @router.put(
        "/v1/parcels/{parcel_id}",
        status_code=201,
        responses=success(201, ETAG)
        | refusals(conflicts=["already-sent"], writes=True)
        | {202: {"description": "It waits.", "content": {"text/plain": {}}}},
    )
    async def send_parcel(
        caller: Annotated[Caller, require_scope(scope.name)],
        parcel_id: Annotated[int, InPath(description="Of the parcel.")],
        body: Parcel,
        after: Annotated[str, WithJsonSchema(AFTER)] = "",
        limit: int = 50,
    ) -> Parcel:
        """Send a parcel."""
        raise NotImplementedError

    document = http.create_document_of("parcels-svc", [router])
    [operation] = list_operations(document)
    components = document["components"]["schemas"]
    own = {(409, "already-sent")}
    key, tags = (header["description"] for header in HEADERS_OF_CHANGES)

    shown = join_parts(*http.write_operation(operation, own, components))

    assert own < operation.refusals
    assert operation.scopes == {scope.name}
    assert http.write_scopes(operation.scopes).splitlines()[2:] == [
        f"| `{scope.name}` | {scope.allows} | {', '.join(scope.roles)} |"
    ]
    fields = """\
What is sent.

| field | type | required | meaning |
| --- | --- | --- | --- |
| `weight` | integer, at least 1 | yes | In grams. |

Any other field is refused.

```json
{
  "weight": 2
}
```
"""
    assert (
        shown
        == f"""\
## Send parcel: PUT /v1/parcels/{{parcel_id}}

Send a parcel.

Scope: `{scope.name}` ({scope.allows}).

**Parameters**

| parameter | in | type | required | meaning |
| --- | --- | --- | --- | --- |
| `parcel_id` | path | integer | yes | Of the parcel. |
| `after` | query | string, by default `""` |  | The last one. |
| `limit` | query | integer, by default `50` |  |  |
| `Idempotency-Key` | header | string, `^[\\x21-\\x7e]{{1,255}}$` |  | {key} |
| `If-Match` | header | entity-tags |  | {tags} |

**Request**

{fields}
**201 Created** with `ETag`

{fields}
**202 Accepted**

It waits.

Content type: `text/plain`

**Refused**

| status | codes |
| --- | --- |
| 409 Conflict | `already-sent` |
"""
    )


# A JSON Schema in words

COMPONENTS = {
    "Line": {
        "type": "object",
        "description": "Of an order.",
        "properties": {"quantity": {"type": "integer"}},
    },
    "Place": {"type": "string", "description": "In capitals."},
}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string", "format": "uuid"}, "uuid"),
        ({"type": "integer", "minimum": 1.0, "maximum": 9}, "integer, at least 1, at most 9"),
        ({"type": "number", "exclusiveMinimum": 0}, "number, above 0"),
        ({"type": "string", "pattern": "^a|b$"}, "string, `^a|b$`"),
        ({"type": "string", "pattern": "a" * 41}, "string"),
        ({"type": "integer", "default": 50}, "integer, by default `50`"),
        ({"type": "boolean", "default": False}, "boolean, by default `false`"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string, or null"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "string or integer"),
        ({"type": "array", "items": {"type": "string"}}, "array of string"),
        (
            {"type": "array", "items": {"$ref": "#/x/Line"}, "maxItems": 9},
            "array of object, length at most 9",
        ),
        ({"enum": ["a", "b"]}, 'one of `"a"`, `"b"`'),
        ({"const": "1.0"}, '`"1.0"`'),
        ({"$ref": "#/components/schemas/Line"}, "object"),
        (
            {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            "string or integer, or null",
        ),
        ({"oneOf": [{"type": "string"}, {"$ref": "#/x/Line"}]}, "string or object"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "object of integer"),
        ({"type": "object", "additionalProperties": False}, "object"),
        ({}, "any"),
    ],
)
def test_a_type_is_described_in_words(schema: dict[str, object], words: str) -> None:
    assert describe_type(schema, COMPONENTS) == words


def test_a_field_is_followed_by_those_inside_it() -> None:
    lines = {"type": "array", "items": {"$ref": "#/components/schemas/Line"}}
    at = {"anyOf": [{"$ref": "#/components/schemas/Place"}, {"type": "null"}]}
    schema = {"properties": {"lines": lines, "at": at}, "required": ["lines"]}

    assert list(find_fields(schema, COMPONENTS)) == [
        json_schema.Field("lines", "array of object", True, "Of an order."),
        json_schema.Field("lines[].quantity", "integer", False, ""),
        json_schema.Field("at", "string, or null", False, "In capitals."),
    ]


def test_fields_of_an_array_a_choice_and_a_text_with_json_are_found() -> None:
    line = {"$ref": "#/x/Line"}
    schema = {
        "properties": {
            "one": {"type": "array", "items": {"oneOf": [line, {"type": "string"}]}},
            "text": {"type": "string", "contentSchema": line},
        }
    }

    names = [field.name for field in find_fields(schema, COMPONENTS)]

    assert names == ["one", "one[].quantity", "text", "text.quantity"]


def test_a_schema_can_refer_to_itself() -> None:
    node = {"properties": {"next": {"$ref": "#/x/Node"}}}

    names = [field.name for field in find_fields(node, {"Node": node})]

    assert names[:2] == ["next", "next.next"]
    assert len(names) == DEPTH_MAX


def test_what_is_said_where_a_schema_is_used_comes_before_what_the_schema_says() -> None:
    place = {"$ref": "#/components/schemas/Place", "description": "Of the user."}

    [field] = find_fields({"properties": {"at": place}}, COMPONENTS)

    assert field.description == "Of the user."


def test_a_cell_is_one_line_without_a_separator() -> None:
    assert table(["a"], [["b\n | c"]]) == "| a |\n| --- |\n| b \\| c |\n"
    assert table(["a"], [["`b|c` | d"]]).splitlines()[-1] == "| `b|c` \\| d |"
    assert table(["a"], []) == ""
