"""The command handler of `PlaceOrder`: the prices of an order, and its attempts."""

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from orders_svc.item.events import ItemListed
from orders_svc.item.item import ITEM
from orders_svc.item.item_cache import ItemCache
from orders_svc.order import placing
from orders_svc.order.order import compute_amount
from orders_svc.order.placing import OrderDraft, to_command
from shared.eventsourcing.errors import StaleRead
from shared.eventsourcing.handler import Outcome
from shared.eventsourcing.state_cache import StateCache
from shared.messaging.messages import RecordedEvent
from shared.web.problems import HttpProblem

IPHONE, NEW_YEAR = UUID(int=1), datetime(2016, 1, 1, tzinfo=UTC)
LISTED = ItemListed(
    item_id=IPHONE,
    name="iphone",
    type="phone",
    origin="BJ",
    price=Decimal("5388.88"),
    effective_at=NEW_YEAR,
)


class ItemStore:
    """Holds one listed item, and counts its reads."""

    def __init__(self) -> None:
        self.reads = 0
        self.states = StateCache()

    async def find_versions(self, item_ids: Iterable[UUID]) -> dict[UUID, int]:
        return {IPHONE: 1}

    async def read_from(self, first_versions: object) -> dict[UUID, list[RecordedEvent[Any]]]:
        self.reads += 1
        recorded: RecordedEvent[Any] = RecordedEvent(
            stream_id=IPHONE, version=1, event_id=IPHONE, event=LISTED, recorded_at=NEW_YEAR
        )
        return {IPHONE: [recorded]}


class StaleWriteRequest:
    """An append that always finds a newer version of an item."""

    attempts = 0

    async def handle(self, *arguments: object, **named: object) -> None:
        self.attempts += 1
        raise StaleRead


def draft(*quantities: int) -> OrderDraft:
    return OrderDraft(
        order_id=UUID(int=2),
        user_id=UUID(int=3),
        quantities=tuple((IPHONE, quantity) for quantity in quantities),
        ordered_at=NEW_YEAR,
    )


def test_each_line_has_the_price_of_its_item() -> None:
    item: Outcome[Any] = Outcome(state=ITEM.state_after([LISTED]), version=1)

    command = to_command({IPHONE: item}, draft(2, 1))

    assert [(line.quantity, line.unit_price) for line in command.lines] == [
        (2, Decimal("5388.88")),
        (1, Decimal("5388.88")),
    ]
    assert compute_amount(command.lines) == Decimal("16166.64")


async def test_a_placement_reads_its_items_again_and_gives_up_after_its_last_attempt() -> None:
    store: Any = ItemStore()
    write_request: Any = StaleWriteRequest()
    orders: Any = object()
    make_response: Any = None

    with pytest.raises(HttpProblem) as refused:
        await placing.place(draft(1), orders, ItemCache(store), write_request, make_response)

    assert (refused.value.status, refused.value.code) == (503, "busy")
    assert (write_request.attempts, store.reads) == (placing.ATTEMPTS_MAX, placing.ATTEMPTS_MAX)
