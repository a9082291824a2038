"""Tables, code and headings as Markdown; and the fields of a JSON Schema as rows."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Schema = Mapping[str, Any]
"""A JSON Schema, or a part of one."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a row is one line."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(to_cell, line))} |\n" for line in lines)


def to_cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


def codes(names: Iterable[object]) -> str:
    return ", ".join(map(code, names))


def as_json(value: object) -> str:
    return f"```json\n{json.dumps(value, indent=2, ensure_ascii=False)}\n```\n"


def sections(*parts: str) -> str:
    """The parts of a page, with an empty line between them."""
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


class Field(NamedTuple):
    """A field of a JSON document. The name of one in an array of objects is `lines[].quantity`."""

    name: str
    type: str
    is_required: bool
    description: str


def field_table(schema: Schema, components: Schema) -> str:
    rows = [
        (code(each.name), each.type, "yes" if each.is_required else "", each.description)
        for each in find_fields(schema, components)
    ]
    return table(("field", "type", "required", "meaning"), rows) if rows else ""


def find_fields(schema: Schema, components: Schema, prefix: str = "") -> Iterator[Field]:
    """The fields of an object, each followed by those inside it."""
    schema = follow(schema, components)
    required = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        described = follow(part, components)
        yield Field(
            name=prefix + name,
            type=describe_type(part, components),
            is_required=name in required,
            description=part.get("description", described.get("description", "")),
        )
        inner, marks = described, ""
        while inner.get("type") == "array":
            inner, marks = follow(inner["items"], components), marks + "[]"
        for choice in inner.get("anyOf", [inner]):
            yield from find_fields(choice, components, f"{prefix}{name}{marks}.")


def follow(schema: Schema, components: Schema) -> Schema:
    """The schema that a reference names; without null, if that is the only other choice."""
    if "$ref" in schema:
        named: Schema = components[schema["$ref"].rpartition("/")[2]]
        return follow({**named, **{k: v for k, v in schema.items() if k != "$ref"}}, components)
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) == 1:
        rest = {k: v for k, v in schema.items() if k != "anyOf"}
        return follow({**choices[0], **rest}, components)
    return schema


def describe_type(schema: Schema, components: Schema) -> str:
    """The type of a value in words, with its bounds."""
    can_be_null = {"type": "null"} in schema.get("anyOf", ())
    schema = follow(schema, components)
    if "const" in schema:
        words = code(json.dumps(schema["const"]))
    elif "enum" in schema:
        words = "one of " + codes(map(json.dumps, schema["enum"]))
    elif "anyOf" in schema:
        words = " or ".join(describe_type(each, components) for each in schema["anyOf"])
    elif schema.get("type") == "array":
        words = f"array of {describe_type(schema.get('items', {}), components)}"
    else:
        words = ", ".join((schema.get("format", schema.get("type", "any")), *bounds(schema)))
    return f"{words}, or null" if can_be_null else words


BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} of them",
    "maxItems": "at most {} of them",
    "pattern": "`{}`",
}


BOUND_CHARACTERS_MAX = 40


def bounds(schema: Schema) -> Iterator[str]:
    """The bounds of a value, in words; a pattern only if it is short."""
    for keyword, words in BOUNDS.items():
        if keyword in schema and len(str(schema[keyword])) <= BOUND_CHARACTERS_MAX:
            yield words.format(schema[keyword])
