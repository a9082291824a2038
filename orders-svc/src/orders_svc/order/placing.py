"""The command handler of `PlaceOrder`: an order is recorded at the current prices of its items."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from fastapi import Response

from orders_svc.item.item import Listed
from orders_svc.item.item_cache import ItemCache
from orders_svc.order.commands import PlaceOrder
from orders_svc.order.events import OrderEvent, OrderLine
from orders_svc.order.order import ORDER, Order, compute_amount
from shared.eventsourcing.errors import StaleRead
from shared.eventsourcing.event_store import EventStore
from shared.eventsourcing.handler import Outcome
from shared.messaging.bounds import MONEY_MAX
from shared.messaging.messages import StoredResponse
from shared.web.problems import HttpProblem
from shared.web.write_requests import WriteRequest

ATTEMPTS_MAX = 5
"""Attempts to append an order before a caller is asked to retry; each time an item had changed."""
AMOUNT_TOO_LARGE = "amount-too-large"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderDraft:
    """An order without prices; `quantities` are (item id, quantity), one for each line."""

    order_id: UUID
    user_id: UUID
    quantities: tuple[tuple[UUID, int], ...]
    ordered_at: datetime


async def place(
    draft: OrderDraft,
    orders: EventStore[OrderEvent],
    item_cache: ItemCache,
    write_request: WriteRequest,
    make_response: Callable[[Outcome[Order]], StoredResponse],
) -> Response:
    """Record an order, and read its items again when one has changed since it was cached.

    Raises:
        NotFound, Refused: an item was never listed, or is delisted.
        HttpProblem: the order is worth too much, or its items change too often.
    """
    item_ids = {item_id for item_id, _ in draft.quantities}
    for _ in range(ATTEMPTS_MAX):
        items = await item_cache.find(item_ids)
        try:
            return await write_request.handle(
                orders,
                ORDER,
                draft.order_id,
                to_command(items, draft),
                make_response,
                is_new=True,
                read_versions={item_id: item.version for item_id, item in items.items()},
            )
        except StaleRead:
            item_cache.forget(item_ids)
    raise HttpProblem(503, "busy", "the items are being changed concurrently; retry")


def to_command(items: Mapping[UUID, Outcome[Listed]], draft: OrderDraft) -> PlaceOrder:
    """The command to place a draft. Raises HttpProblem when the order is worth too much."""
    lines = tuple(
        OrderLine(item_id=item_id, quantity=quantity, unit_price=items[item_id].state.price)
        for item_id, quantity in draft.quantities
    )
    if compute_amount(lines) > MONEY_MAX:
        raise HttpProblem(422, AMOUNT_TOO_LARGE, f"an order is worth at most {MONEY_MAX}")
    return PlaceOrder(
        order_id=draft.order_id, user_id=draft.user_id, lines=lines, ordered_at=draft.ordered_at
    )
