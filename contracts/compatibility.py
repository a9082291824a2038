"""Whether what the code says now keeps what was promised: pure functions over schemas.

Both ways: who reads today's form reads all older events, and who knows only the older form reads
today's events. So a form may grow by fields that may be missing, and by nothing else.
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
    """A schema says something that these rules do not know, so they cannot tell what it breaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in the contracts something is, for the sentences."""

    topic: str
    type: str
    version: int
    field: str = ""

    def says(self, what: str, why: str, instead: str = "keep it") -> str:
        field = f"field `{self.field}` " if self.field else ""
        where = f"{self.topic} {self.type} v{self.version}: {field}"
        return f"{where}{what}: {why}; {instead}, or publish {self.type} v{self.version + 1}"

    def within(self, name: str) -> "Place":
        """One of its fields."""
        return replace(self, field=f"{self.field}.{name}" if self.field else name)


def broken_promises(promised: dict[str, Promise], now: dict[str, Promise]) -> list[str]:
    """One sentence for each promise that is not kept; none if all are.

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
            broken.append(f"{topic}: the topic was removed: its readers wait for ever; keep it")
    return broken


def broken_on(topic: str, promised: Promise, now: Promise) -> Iterator[str]:
    for what in ("key", "partitions"):
        if promised[what] != now[what]:
            yield (
                f"{topic}: {what} was {promised[what]} and is {now[what]}: messages of one key"
                " would overtake those of before; keep it, or make a new topic"
            )
    for type_, versions in promised["types"].items():
        if type_ in now["types"]:
            yield from broken_in(topic, type_, versions, now["types"][type_])
        else:
            yield (
                f"{topic} {type_}: the type was removed: readers wait for it, and events of before"
                " cannot be read; keep it, and stop to write it"
            )


def broken_in(topic: str, type_: str, promised: Schema, now: Schema) -> Iterator[str]:
    """`promised` and `now` are schemas by version."""
    for version, schema in promised.items():
        place = Place(topic=topic, type=type_, version=int(version))
        if version in now:
            yield from breaks(place, schema, now[version])
        else:
            yield place.says("was removed", "events of it are stored for ever")


def breaks(place: Place, old: Schema, new: Schema) -> Iterator[str]:
    """What a schema breaks of the one before."""
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
            yield place.says(
                f"had {keyword} {old.get(keyword)} and has {new.get(keyword)}",
                "readers on either side take one for the other",
            )
            return
    for bound in sorted(BOUNDS):
        if old.get(bound) != new.get(bound):
            yield place.says(
                f"had {bound} {old.get(bound)} and has {new.get(bound)}",
                "events of before may be outside of the new bound, or new ones outside of the old",
            )


def broken_values(
    place: Place, old: Sequence[object] | None, new: Sequence[object] | None
) -> Iterator[str]:
    """`old` and `new` are all values there may be; None for any."""
    if old is None and new is None:
        return
    if new is None:
        yield place.says("may have any value now", "readers know only the listed ones")
    elif old is None:
        yield place.says("has a list of values now", "events of before may have others")
    else:
        for value in sorted(set(old) - set(new), key=str):
            yield place.says(f"lost the value {value!r}", "events of before have it")
        for value in sorted(set(new) - set(old), key=str):
            yield place.says(
                f"may have the value {value!r} now",
                "readers that tell the values apart do not know it",
                "add a field for it",
            )


def broken_choice(place: Place, old: list[Schema], new: list[Schema]) -> Iterator[str]:
    if NULL in new and NULL not in old:
        yield place.says("may be null now", "readers of before count on a value")
    if NULL in old and NULL not in new:
        yield place.says("may not be null any more", "it is null in events of before")
    before, after = ([each for each in side if each != NULL] for side in (old, new))
    if len(before) != len(after):
        yield place.says("has another choice of forms", "a reader may not know the one it meets")
    else:
        for left, right in zip(before, after, strict=True):
            yield from breaks(place, left, right)


def broken_fields(place: Place, old: Schema, new: Schema) -> Iterator[str]:
    before, after = old.get("properties", {}), new.get("properties", {})
    for name in sorted(before.keys() - after.keys()):
        yield place.within(name).says(
            "was removed",
            f"readers of version {place.version} still ask for it",
        )
    for name in sorted(before.keys() & after.keys()):
        yield from broken_presence(place.within(name), name, old, new)
        yield from breaks(place.within(name), before[name], after[name])
    for name in sorted(after.keys() - before.keys()):
        if name in new.get("required", []):
            yield place.within(name).says(
                "was added without a default",
                "events of before do not have it",
                "give it a default",
            )


def broken_presence(place: Place, name: str, old: Schema, new: Schema) -> Iterator[str]:
    """Whether a field may be missing, and what it means if it is."""
    had, has = name in old.get("required", []), name in new.get("required", [])
    default_before, default_now = (
        schema["properties"][name].get("default", NOTHING) for schema in (old, new)
    )
    if has and not had:
        yield place.says("lost its default", "it is missing in events of before")
    elif had and not has:
        yield place.says("may be missing now", "readers of before ask for it")
    elif default_before != default_now:
        yield place.says(
            f"had the default {default_before!r} and has {default_now!r}",
            "events without it would mean something else",
        )


def choices(schema: Schema) -> list[Schema]:
    """The forms that a value may have; most schemas give one."""
    return list(schema.get("anyOf", [bare(schema)]))


def bare(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in {"default", *NO_PROMISE}}


def values(schema: Schema) -> Sequence[object] | None:
    return [schema["const"]] if "const" in schema else schema.get("enum")


def refuse_unknown(schema: Schema, where: str) -> None:
    """Look at a schema and all within it. Raises UnknownKeyword."""
    for keyword in schema.keys() - KNOWN:
        raise UnknownKeyword(
            f"{where}: `{keyword}`: teach compatibility.py what a change of it breaks"
        )
    fields = schema.get("properties", {})
    for name, field in fields.items():
        refuse_unknown(field, f"{where}.{name}")
    for inner in (*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])):
        refuse_unknown(inner, f"{where}[]")
