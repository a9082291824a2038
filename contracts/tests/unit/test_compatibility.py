"""Every change that breaks a promise is refused with the reason; those that keep it are not."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import field, make_dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from annotated_types import MaxLen

from contracts.compatibility import Promise, UnknownKeyword, broken_promises
from contracts.event_schemas import schema_of
from shared.eventsourcing.codec import Codec

Fields = Mapping[str, Any]
"""The type of each field of a class; with its default in a pair."""


def form(fields: Fields) -> type:
    """A class as a contract has them."""
    plain = {
        name: type_ if isinstance(type_, tuple) else (type_,) for name, type_ in fields.items()
    }
    return make_dataclass(
        "Form",
        [
            (name, type_, *(field(default=default) for default in defaults))
            for name, (type_, *defaults) in plain.items()
        ],
        kw_only=True,
    )


LINE: Fields = {"item_id": UUID, "quantity": int}
PLACED: Fields = {
    "order_id": UUID,
    "amount": Decimal,
    "gender": Literal["female", "male"],
    "place": Annotated[str, MaxLen(32)],
    "voucher": str | None,
    "note": (str, ""),
    "lines": tuple[form(LINE), ...],  # type: ignore[misc]
    "ordered_at": datetime,
}


def promise(
    fields: Fields = PLACED,
    *,
    topic: str = "orders.v1",
    type_: str = "order-placed",
    key: str = "user_id",
    partitions: int = 4,
) -> dict[str, Promise]:
    schema = schema_of(topic, Codec({type_: form(fields)}), type_)
    return {topic: {"key": key, "partitions": partitions, "types": {type_: {"1": schema}}}}


def placed(**changes: object) -> dict[str, Promise]:
    return promise({**PLACED, **changes})


def placed_without(name: str, **changes: object) -> dict[str, Promise]:
    return promise({each: type_ for each, type_ in {**PLACED, **changes}.items() if each != name})


def lines_of(**changes: object) -> Any:
    return tuple[form({**LINE, **changes}), ...]  # type: ignore[misc]


def versions_in(promised: dict[str, Promise]) -> dict[str, Any]:
    """The schemas of the only type by version."""
    [only] = promised["orders.v1"]["types"].values()
    return dict(only)


def with_types(types: dict[str, Any]) -> dict[str, Promise]:
    """The promise of `placed` with more types, or with others of the same name."""
    before = placed()["orders.v1"]
    return {"orders.v1": {**before, "types": before["types"] | types}}


BREAKING = {
    "a field is removed": (
        placed_without("amount"),
        "orders.v1 order-placed v1: field `amount` was removed: readers of version 1 still"
        " require it; keep it, or publish order-placed v2",
    ),
    "a field is renamed": (
        placed_without("amount", total=Decimal),
        "field `total` was added without a default: older events do not have it; give it a"
        " default, or publish order-placed v2",
    ),
    "a field is added that old events lack": (
        placed(channel=str),
        "field `channel` was added without a default: older events do not have it",
    ),
    "a field loses its default": (
        placed(note=str),
        "field `note` lost its default: it is missing in older events",
    ),
    "a field may be missing": (
        placed(order_id=(UUID, UUID(int=0))),
        "field `order_id` can be missing now: older readers require it",
    ),
    "a default changes": (
        placed(note=(str, "none")),
        "field `note` had the default '' and has 'none': events without it would mean something",
    ),
    "a type changes": (
        placed(amount=int),
        "field `amount` had type string and has integer: readers on either side misinterpret it",
    ),
    "a format changes": (
        placed(ordered_at=date),
        "field `ordered_at` had format date-time and has date",
    ),
    "an id becomes money": (
        placed(order_id=Decimal),
        "field `order_id` had format uuid and has None",
    ),
    "a text becomes shorter": (
        placed(place=Annotated[str, MaxLen(16)]),
        "field `place` had maxLength 32 and has 16: older events may be outside of the new",
    ),
    "a value is taken away": (
        placed(gender=Literal["male"]),
        "field `gender` lost the value 'female': older events have it; keep it",
    ),
    "a value is added": (
        placed(gender=Literal["female", "male", "other"]),
        "field `gender` can have the value 'other' now: readers that distinguish the values do not"
        " know it; add a field for it, or publish order-placed v2",
    ),
    "any value may come": (
        placed(gender=str),
        "field `gender` can have any value now: readers know only the listed ones",
    ),
    "a field may be null": (
        placed(amount=Decimal | None),
        "field `amount` can be null now: older readers require a value",
    ),
    "a field may not be null": (
        placed(voucher=str),
        "field `voucher` cannot be null any more: it is null in older events",
    ),
    "a field of a line is removed": (
        placed(lines=tuple[form({"item_id": UUID}), ...]),  # type: ignore[misc]
        "field `lines[].quantity` was removed: readers of version 1 still require it",
    ),
    "a line becomes the only one": (
        placed(lines=form(LINE)),
        "field `lines` had type array and has object",
    ),
    "the key changes": (
        promise(key="order_id"),
        "orders.v1: key was user_id and is order_id: messages of one key would overtake earlier"
        " ones; keep it, or create a new topic",
    ),
    "the partitions change": (promise(partitions=8), "orders.v1: partitions was 4 and is 8"),
    "the type is renamed": (
        promise(type_="order-made"),
        "orders.v1 order-placed: the type was removed: readers wait for it",
    ),
    "the topic is renamed": (
        promise(topic="orders.v2"),
        "orders.v1: the topic was removed: its readers wait for it indefinitely; keep it",
    ),
}

KEEPING = {
    "nothing changes": placed(),
    "a field is added with a default": placed(channel=(str, "web")),
    "a field is added that may be null": placed(channel=(str | None, None)),
    "a field of a line is added with a default": placed(lines=lines_of(colour=(str, ""))),
    "a renamed field under both names": placed(total=(Decimal | None, None)),
    "fields are in another order": promise(dict(reversed(list(PLACED.items())))),
    "a type is added": with_types({"order-sent": versions_in(promise(type_="order-sent"))}),
    "a topic is added": placed() | promise(topic="parcels.v1"),
    "a version is added": with_types(
        {
            "order-placed": {
                "1": versions_in(placed())["1"],
                "2": versions_in(placed_without("amount"))["1"],
            }
        }
    ),
}


@pytest.mark.parametrize(("now", "sentence"), BREAKING.values(), ids=BREAKING.keys())
def test_a_change_that_breaks_a_promise_is_refused_in_words(
    now: dict[str, Promise], sentence: str
) -> None:
    broken = broken_promises(promise(), now)

    assert [each for each in broken if sentence in each], broken


@pytest.mark.parametrize("now", KEEPING.values(), ids=KEEPING.keys())
def test_a_change_that_keeps_the_promise_is_accepted(now: dict[str, Promise]) -> None:
    assert broken_promises(promise(), now) == []


def test_a_version_that_was_released_may_not_go() -> None:
    released = KEEPING["a version is added"]

    assert broken_promises(released, promise()) == [
        "orders.v1 order-placed v2: was removed: events of it are stored permanently; keep it, or"
        " publish order-placed v3"
    ]


def test_two_changes_are_told_in_two_sentences() -> None:
    assert len(broken_promises(promise(), placed_without("amount", note=str))) == 2


@pytest.mark.parametrize("place", ["field", "line", "new type"])
def test_what_the_rules_do_not_know_is_never_passed_over(place: str) -> None:
    """Also where it did not change: a later change of it could not be judged."""
    odd = deepcopy(KEEPING["a type is added"])
    types = odd["orders.v1"]["types"]
    schema = types["order-sent" if place == "new type" else "order-placed"]["1"]
    fields = schema["properties"]
    (fields["lines"]["items"] if place == "line" else fields["note"])["multipleOf"] = 3

    with pytest.raises(UnknownKeyword, match="`multipleOf`"):
        broken_promises(odd, odd)
