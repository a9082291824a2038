"""The classes of a contract as JSON Schema (2020-12), in the small subset that is used here.

Nothing is shared by reference, so that a file can be read, compared and validated alone.
"""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from shared.eventsourcing.codec import Codec
from shared.messaging.bounds import INSTANT_FORM, MONEY_FORM

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NO_REFERENCE = {"$schema", "$id"}
"""What identifies a schema as a file."""
MONEY: Schema = {"type": "string", "pattern": f"^{MONEY_FORM}$"}
INSTANT: Schema = {
    "type": "string",
    "format": "date-time",
    "pattern": f"^{INSTANT_FORM}$",
}


class PublicValues(GenerateJsonSchema):
    """Every Decimal is money, and a JSON number cannot hold cents exactly; times are in UTC."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> Schema:
        return dict(MONEY)

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> Schema:
        return dict(INSTANT)


def schema_of(topic: str, codec: Codec[Any], name: str) -> Schema:
    """The schema of the newest version of a type on its topic."""
    version = codec.get_version(name)
    generated = codec.get_adapter(name).json_schema(
        mode="serialization", schema_generator=PublicValues
    )
    return {
        "$schema": DIALECT,
        "$id": f"urn:hometown:{topic}:{name}:{version}",
        "title": f"{name} v{version}",
        **plain(generated, generated.get("$defs", {})),
    }


def plain(schema: Schema, definitions: Schema) -> Schema:
    """A schema without generated titles, and with definitions in place of references to them."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].removeprefix("#/$defs/")] | {
            keyword: value for keyword, value in schema.items() if keyword != "$ref"
        }
    result = {key: value for key, value in schema.items() if key not in ("title", "$defs")}
    if "properties" in result:
        fields = result["properties"].items()
        result["properties"] = {name: plain(field, definitions) for name, field in fields}
    if "items" in result:
        result["items"] = plain(result["items"], definitions)
    if "anyOf" in result:
        result["anyOf"] = [plain(branch, definitions) for branch in result["anyOf"]]
    return result


EXAMPLES: dict[str, object] = {
    "uuid": "018fd4a6-2c00-7000-8000-000000000001",
    "date-time": "2016-11-11T00:00:00Z",
    MONEY["pattern"]: "5388.88",
    "integer": 3,
    "boolean": True,
    "null": None,
}


def example_of(schema: Schema, name: str = "text") -> object:
    """A value of a schema, for a new sample; a text is the name of its field."""
    match schema:
        case {"enum": [first, *_]} | {"const": first}:
            return first
        case {"anyOf": [first, *_]}:
            return example_of(first, name)
        case {"properties": fields}:
            return {each: example_of(field, each) for each, field in fields.items()}
        case {"items": item}:
            return [example_of(item, name)]
        case _:
            kind = schema.get("format") or schema.get("pattern") or schema["type"]
            return EXAMPLES.get(kind, name)
