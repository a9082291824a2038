"""A JSON Schema in words: the fields of a document, with their types and bounds."""

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from scripts.documentation.markdown import code, codes, table
from scripts.openapi import NULL, Schema, follow, list_choices

DEPTH_MAX = 8
"""Of fields in fields: a schema can refer to itself."""


class Field(NamedTuple):
    """A field of a JSON document. The name of one in an array of objects is `lines[].quantity`."""

    name: str
    type: str
    is_required: bool
    description: str


def write_fields(schema: Schema, components: Schema) -> str:
    """Return the fields of an object as a table.

    Args:
        components: the schemas to which references lead, by their names.
    """
    rows = [
        (code(each.name), each.type, "yes" if each.is_required else "", each.description)
        for each in find_fields(schema, components)
    ]
    header = ("field", "type", "required", "meaning")
    has_meanings = any(row[-1] for row in rows)
    return table(header, rows) if has_meanings else table(header[:-1], (row[:-1] for row in rows))


def find_fields(
    schema: Schema, components: Schema, prefix: str = "", depth: int = DEPTH_MAX
) -> Iterator[Field]:
    """Yield the fields of an object, each before those in it, up to a depth."""
    schema = follow(schema, components)
    required = schema.get("required", ())
    for name, part in schema.get("properties", {}).items() if depth else ():
        inner = follow(part, components)
        description, marks = inner.get("description"), ""
        while inner.get("type") == "array":
            inner, marks = follow(inner.get("items", {}), components), f"{marks}[]"
        inner = follow(inner.get("contentSchema", inner), components)
        yield Field(
            name=prefix + name,
            type=describe_type(part, components),
            is_required=name in required,
            description=description or inner.get("description", ""),
        )
        for choice in list_choices(inner) or [inner]:
            yield from find_fields(choice, components, f"{prefix}{name}{marks}.", depth - 1)


def describe_type(schema: Schema, components: Schema) -> str:
    """Return the type of a value in words, with its bounds."""
    can_be_null = NULL in schema.get("anyOf", ())
    schema = follow(schema, components)
    if "const" in schema:
        words = code(json.dumps(schema["const"]))
    elif "enum" in schema:
        words = "one of " + codes(map(json.dumps, schema["enum"]))
    elif choices := list_choices(schema):
        words = " or ".join(describe_type(each, components) for each in choices)
    elif schema.get("type") == "array":
        items = describe_type(schema.get("items", {}), components)
        words = ", ".join((f"array of {items}", *describe_bounds(schema)))
    else:
        name = schema.get("format", schema.get("type", "any"))
        words = ", ".join((name, *describe_bounds(schema)))
        if isinstance(values := schema.get("additionalProperties"), Mapping):
            words += f" of {describe_type(values, components)}"
    if schema.get("default") is not None:
        words += f", by default {code(json.dumps(schema['default']))}"
    return f"{words}, or null" if can_be_null else words


BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "length at least {}",
    "maxLength": "length at most {}",
    "minItems": "length at least {}",
    "maxItems": "length at most {}",
    "pattern": "`{}`",
}
PATTERN_CHARACTERS_MAX = 40
"""A longer one is for programs, which read the document."""


def describe_bounds(schema: Schema) -> Iterator[str]:
    for keyword, words in BOUNDS.items():
        bound = schema.get(keyword)
        if isinstance(bound, float) and bound.is_integer():
            bound = int(bound)
        if bound is not None and len(str(bound)) <= PATTERN_CHARACTERS_MAX:
            yield words.format(bound)
