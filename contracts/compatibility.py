"""Compatibility of the current schemas with the released ones: pure functions over schemas.

In both directions: a reader of the current schema reads all older events, and a reader of an older
schema reads current events. So a schema can grow by optional fields, and by nothing else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contracts.event_schemas import Schema

Promise = dict[str, Any]
"""A topic's key and number of partitions, and the schemas of its types by name and version."""

NO_PROMISE = {"$schema", "$id", "title", "description"}
BOUNDS = {
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
}
KNOWN = NO_PROMISE | BOUNDS
KNOWN |= {"type", "format", "enum", "const", "anyOf", "items", "properties", "required", "default"}

NULL = {"type": "null"}
NOTHING = object()


class UnknownKeyword(Exception):
    """A schema has a keyword that these rules do not know, so they cannot decide what it breaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in the contracts something is, for messages."""

    topic: str
    type: str
    version: int
    field: str = ""

    def describe(self, what: str, why: str, instead: str = "keep it") -> str:
        field = f"field `{self.field}` " if self.field else ""
        where = f"{self.topic} {self.type} v{self.version}: {field}"
        return f"{where}{what}: {why}; {instead}, or publish {self.type} v{self.version + 1}"

    def within(self, name: str) -> "Place":
        """One of its fields."""
        return replace(self, field=f"{self.field}.{name}" if self.field else name)


def broken_promises(promised: dict[str, Promise], now: dict[str, Promise]) -> list[str]:
    """A message for each broken promise; empty if there is none.

    Raises:
        UnknownKeyword: a schema has a keyword beyond KNOWN.
    """
    for topic, promise in (*promised.items(), *now.items()):
        for type_, versions in promise["types"].items():
            for schema in versions.values():
                refuse_unknown(schema, f"{topic} {type_}")
    broken: list[str] = []
    for topic, promise in promised.items():
        if topic in now:
            broken += broken_on(topic, promise, now[topic])
        else:
            broken.append(
                f"{topic}: the topic was removed: its readers wait for it indefinitely; keep it"
            )
    return broken


def broken_on(topic: str, promised: Promise, now: Promise) -> Iterator[str]:
    for what in ("key", "partitions"):
        if promised[what] != now[what]:
            yield (
                f"{topic}: {what} was {promised[what]} and is {now[what]}: messages of one key"
                " would overtake earlier ones; keep it, or create a new topic"
            )
    for type_, versions in promised["types"].items():
        if type_ in now["types"]:
            yield from broken_in(topic, type_, versions, now["types"][type_])
        else:
            yield (
                f"{topic} {type_}: the type was removed: readers wait for it, and older events"
                " cannot be read; keep it, and stop writing it"
            )


def broken_in(topic: str, type_: str, promised: Schema, now: Schema) -> Iterator[str]:
    """`promised` and `now` are schemas by version."""
    for version, schema in promised.items():
        place = Place(topic=topic, type=type_, version=int(version))
        if version in now:
            yield from breaks(place, schema, now[version])
        else:
            yield place.describe("was removed", "events of it are stored permanently")


def breaks(place: Place, old: Schema, new: Schema) -> Iterator[str]:
    """What a schema breaks compared with its predecessor."""
    if "anyOf" in old or "anyOf" in new:
        yield from broken_choice(place, choices(old), choices(new))
    else:
        yield from broken_form(place, old, new)
        yield from broken_values(place, values(old), values(new))
        if "items" in old and "items" in new:
            yield from breaks(replace(place, field=f"{place.field}[]"), old["items"], new["items"])
        yield from broken_fields(place, old, new)


def broken_form(place: Place, old: Schema, new: Schema) -> Iterator[str]:
    for keyword in ("type", "format"):
        if old.get(keyword) != new.get(keyword):
            yield place.describe(
                f"had {keyword} {old.get(keyword)} and has {new.get(keyword)}",
                "readers on either side misinterpret it",
            )
            return
    for bound in sorted(BOUNDS):
        if old.get(bound) != new.get(bound):
            yield place.describe(
                f"had {bound} {old.get(bound)} and has {new.get(bound)}",
                "older events may be outside of the new bound, or new ones outside of the old",
            )


def broken_values(
    place: Place, old: Sequence[object] | None, new: Sequence[object] | None
) -> Iterator[str]:
    """`old` and `new` are all allowed values; None for any."""
    if old is None and new is None:
        return
    if new is None:
        yield place.describe("can have any value now", "readers know only the listed ones")
    elif old is None:
        yield place.describe("has a list of values now", "older events may have others")
    else:
        for value in sorted(set(old) - set(new), key=str):
            yield place.describe(f"lost the value {value!r}", "older events have it")
        for value in sorted(set(new) - set(old), key=str):
            yield place.describe(
                f"can have the value {value!r} now",
                "readers that distinguish the values do not know it",
                "add a field for it",
            )


def broken_choice(place: Place, old: list[Schema], new: list[Schema]) -> Iterator[str]:
    if NULL in new and NULL not in old:
        yield place.describe("can be null now", "older readers require a value")
    if NULL in old and NULL not in new:
        yield place.describe("cannot be null any more", "it is null in older events")
    before, after = ([each for each in side if each != NULL] for side in (old, new))
    if len(before) != len(after):
        yield place.describe("has other alternatives", "a reader may not know the one it gets")
    else:
        for left, right in zip(before, after, strict=True):
            yield from breaks(place, left, right)


def broken_fields(place: Place, old: Schema, new: Schema) -> Iterator[str]:
    before, after = old.get("properties", {}), new.get("properties", {})
    for name in sorted(before.keys() - after.keys()):
        yield place.within(name).describe(
            "was removed",
            f"readers of version {place.version} still require it",
        )
    for name in sorted(before.keys() & after.keys()):
        yield from broken_presence(place.within(name), name, old, new)
        yield from breaks(place.within(name), before[name], after[name])
    for name in sorted(after.keys() - before.keys()):
        if name in new.get("required", []):
            yield place.within(name).describe(
                "was added without a default",
                "older events do not have it",
                "give it a default",
            )


def broken_presence(place: Place, name: str, old: Schema, new: Schema) -> Iterator[str]:
    """Whether a field can be missing, and its default if it is."""
    had, has = name in old.get("required", []), name in new.get("required", [])
    default_before, default_now = (
        schema["properties"][name].get("default", NOTHING) for schema in (old, new)
    )
    if has and not had:
        yield place.describe("lost its default", "it is missing in older events")
    elif had and not has:
        yield place.describe("can be missing now", "older readers require it")
    elif default_before != default_now:
        yield place.describe(
            f"had the default {default_before!r} and has {default_now!r}",
            "events without it would mean something else",
        )


def choices(schema: Schema) -> list[Schema]:
    """The alternatives of a value; most schemas have one."""
    return list(schema.get("anyOf", [bare(schema)]))


def bare(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in {"default", *NO_PROMISE}}


def values(schema: Schema) -> Sequence[object] | None:
    return [schema["const"]] if "const" in schema else schema.get("enum")


def refuse_unknown(schema: Schema, where: str) -> None:
    """Check a schema and all schemas within it. Raises UnknownKeyword."""
    for keyword in schema.keys() - KNOWN:
        raise UnknownKeyword(
            f"{where}: `{keyword}`: compatibility.py has no rule for changes of it"
        )
    fields = schema.get("properties", {})
    for name, field in fields.items():
        refuse_unknown(field, f"{where}.{name}")
    for inner in (*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])):
        refuse_unknown(inner, f"{where}[]")
