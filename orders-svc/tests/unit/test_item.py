"""Each command to an item: its events, or a refusal."""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from orders_svc.item.commands import (
    CorrectItemOrigin,
    DelistItem,
    ItemCommand,
    ListItem,
    RepriceItem,
)
from orders_svc.item.events import (
    ItemDelisted,
    ItemEvent,
    ItemListed,
    ItemOriginCorrected,
    ItemRepriced,
)
from orders_svc.item.item import ITEM, require_listed
from shared.eventsourcing.decider import ImpossibleHistory
from shared.eventsourcing.testing import given

IPHONE = UUID(int=1)
WINTER = datetime(2015, 12, 11, tzinfo=UTC)
HALF_PAST = datetime(2016, 11, 11, 0, 30, tzinfo=UTC)
LATER = datetime(2016, 11, 11, 2, tzinfo=UTC)

LISTED = ItemListed(
    item_id=IPHONE,
    name="iphone",
    type="phone",
    origin="BJ",
    price=Decimal("5388.88"),
    effective_at=WINTER,
)
DELISTED = ItemDelisted(item_id=IPHONE, effective_at=LATER)


def repriced(price: str, at: datetime) -> ItemRepriced:
    return ItemRepriced(item_id=IPHONE, price=Decimal(price), effective_at=at)


def corrected(origin: str, at: datetime) -> ItemOriginCorrected:
    return ItemOriginCorrected(item_id=IPHONE, type="phone", origin=origin, effective_at=at)


def reprice(price: str, at: datetime) -> RepriceItem:
    return RepriceItem(price=Decimal(price), effective_at=at)


def test_an_item_is_listed() -> None:
    command = ListItem(
        item_id=IPHONE,
        name="iphone",
        type="phone",
        origin="BJ",
        price=Decimal("5388.88"),
        effective_at=WINTER,
    )

    given(ITEM).when(command).then(LISTED)


def test_an_item_is_repriced() -> None:
    given(ITEM, LISTED).when(reprice("4888.88", LATER)).then(repriced("4888.88", LATER))


def test_the_same_price_at_its_time_is_no_change() -> None:
    past = (LISTED, repriced("4888.88", LATER))

    given(ITEM, *past).when(reprice("4888.88", LATER)).then_no("same-price")
    given(ITEM, *past).when(reprice("5388.88", HALF_PAST)).then_no("same-price")
    given(ITEM, *past).when(reprice("4888.88", HALF_PAST)).then(repriced("4888.88", HALF_PAST))


def test_an_origin_is_corrected_from_a_time_in_the_past_on() -> None:
    command = CorrectItemOrigin(origin="SH", effective_at=WINTER)

    given(ITEM, LISTED).when(command).then(corrected("SH", WINTER))


def test_the_same_origin_at_its_time_is_no_correction() -> None:
    past = (LISTED, corrected("SH", LATER))

    given(ITEM, *past).when(CorrectItemOrigin(origin="SH", effective_at=LATER)).then_no(
        "same-origin"
    )
    given(ITEM, *past).when(CorrectItemOrigin(origin="SH", effective_at=HALF_PAST)).then(
        corrected("SH", HALF_PAST)
    )


def test_price_and_origin_are_those_of_the_latest_change_however_late_others_are_announced() -> (
    None
):
    past: list[ItemEvent] = [
        LISTED,
        repriced("3.00", LATER),
        repriced("2.00", HALF_PAST),
        corrected("GZ", LATER),
        corrected("SH", HALF_PAST),
    ]

    item = require_listed(ITEM.state_after(past))

    assert (item.price, item.origin) == (Decimal("3.00"), "GZ")
    assert (item.prices.at(HALF_PAST), item.origins.at(HALF_PAST)) == (Decimal("2.00"), "SH")


def test_price_and_origin_change_a_maximum_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.eventsourcing.timeline.CHANGES_MAX", 1)
    past = (LISTED, repriced("1.00", HALF_PAST), corrected("SH", HALF_PAST))
    reprice = RepriceItem(price=Decimal("2.00"), effective_at=LATER)
    correct = CorrectItemOrigin(origin="GZ", effective_at=LATER)

    given(ITEM, *past[:1]).when(reprice).then(repriced("2.00", LATER))
    given(ITEM, *past).when(reprice).then_no("too-many-prices")
    given(ITEM, *past).when(correct).then_no("too-many-origins")
    given(ITEM, *past).when(DelistItem(effective_at=LATER)).then(DELISTED)


def test_an_item_is_delisted() -> None:
    given(ITEM, LISTED).when(DelistItem(effective_at=LATER)).then(DELISTED)


@pytest.mark.parametrize(
    "command",
    [
        reprice("1.00", LATER),
        CorrectItemOrigin(origin="SH", effective_at=LATER),
        DelistItem(effective_at=LATER),
    ],
    ids=lambda command: type(command).__name__,
)
def test_commands_to_unknown_and_delisted_items_are_refused(command: ItemCommand) -> None:
    given(ITEM).when(command).then_no("unknown-item")
    given(ITEM, LISTED, DELISTED).when(command).then_no("item-delisted")


@pytest.mark.parametrize(
    "history",
    [
        [repriced("1.00", LATER)],
        [corrected("SH", LATER)],
        [DELISTED],
        [LISTED, LISTED],
        [LISTED, DELISTED, repriced("1.00", LATER)],
        [LISTED, DELISTED, DELISTED],
    ],
    ids=lambda history: " ".join(type(event).__name__ for event in history),
)
def test_a_history_that_no_command_can_lead_to_is_refused(history: Sequence[ItemEvent]) -> None:
    with pytest.raises(ImpossibleHistory):
        ITEM.state_after(history)
