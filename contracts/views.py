"""Whether each reader's view matches the contract: its fields, compared with the schema."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from analytics_spark.job.topics import SCHEMA_VERSION, Topic
from contracts.compatibility import NULL, choices, values
from contracts.event_schemas import MONEY, Schema, schema_of
from contracts.promises import CONTRACT_ON, SPARK_READER, SPARK_TOPICS, VIEWS, View

ARROW: dict[Any, Schema] = {
    pa.string(): {"type": "string"},
    pa.int64(): {"type": "integer"},
    pa.bool_(): {"type": "boolean"},
}


def misreadings() -> list[str]:
    """A message for each field that a reader requires and a contract does not have."""
    return [
        *(each for view in VIEWS for name in view.types for each in misread_by(view, name)),
        *(each for topic in SPARK_TOPICS for each in misread_by_spark(topic)),
    ]


def misread_by(view: View, name: str) -> Iterator[str]:
    """What a view of one type requires and the contract does not have."""
    owner = CONTRACT_ON[view.topic].public
    where = f"{view.reader} reads {view.topic} {name}"
    if name not in owner.names:
        yield f"{where}: there is no such type"
    elif view.codec.get_version(name) != owner.get_version(name):
        yield (
            f"{where}: knows version {view.codec.get_version(name)}, and version"
            f" {owner.get_version(name)} is written: add an upcast"
        )
    else:
        asked = schema_of(view.topic, view.codec, name)
        yield from misread(where, asked, schema_of(view.topic, owner, name))


def misread_by_spark(topic: Topic) -> Iterator[str]:
    """Spark has one schema for all types of a topic: each field has to be in one of them."""
    where = f"{SPARK_READER} reads {topic.name}"
    owner = CONTRACT_ON[topic.name].public
    wanted = [name for name in owner.names if name in topic.types]
    for name in wanted:
        if owner.get_version(name) != SCHEMA_VERSION:
            yield (
                f"{where} {name}: knows version {SCHEMA_VERSION} only: give the contract a"
                " class of its own, which stays as it is"
            )
    given = [schema_of(topic.name, owner, name)["properties"] for name in wanted]
    for field, type_ in topic.schema.items():
        has_it = [fields[field] for fields in given if field in fields]
        if not has_it:
            yield f"{where}: `{field}`: no type has such a field"
        for schema in has_it:
            yield from misread(f"{where}: `{field}`", schema_of_arrow(type_), schema)


def misread(where: str, asked: Schema, given: Schema) -> Iterator[str]:
    """How a value of the contract can differ from the one that the reader requires."""
    wanted, offered = choices(asked), choices(given)
    if NULL in offered and NULL not in wanted:
        yield f"{where}: it can be null"
    for form in offered:
        reasons = [list(misread_form(where, each, form)) for each in wanted]
        if form != NULL and all(reasons):
            yield from reasons[0]


def misread_form(where: str, asked: Schema, given: Schema) -> Iterator[str]:
    for keyword in ("type", "format", "pattern"):
        if keyword in asked and asked[keyword] != given.get(keyword):
            yield f"{where}: requires {keyword} {asked[keyword]}, and gets {given.get(keyword)}"
    known, there = values(asked), values(given)
    if known is not None and (there is None or not set(there) <= set(known)):
        yield f"{where}: knows only {known}, and can get {there or 'any value'}"
    if "items" in asked and "items" in given:
        yield from misread(f"{where}[]", asked["items"], given["items"])
    for name, field in asked.get("properties", {}).items():
        if name not in given.get("properties", {}):
            yield f"{where}: requires `{name}`, which does not exist"
        else:
            if name in asked.get("required", []) and name not in given.get("required", []):
                yield f"{where}: requires `{name}`, which can be missing"
            yield from misread(f"{where}: `{name}`", field, given["properties"][name])


def schema_of_arrow(type_: Any) -> Schema:
    """What an Arrow type of analytics requires; every field is optional there."""
    if pa.types.is_list(type_):
        return {"type": "array", "items": schema_of_arrow(type_.value_type)}
    if pa.types.is_struct(type_):
        fields = {field.name: schema_of_arrow(field.type) for field in type_}
        return {"type": "object", "properties": fields}
    if pa.types.is_timestamp(type_):
        return {"type": "string", "format": "date-time"}
    return MONEY if pa.types.is_decimal(type_) else ARROW[type_]
