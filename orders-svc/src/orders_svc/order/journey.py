"""The way of one order through the system: each known hop, and the services that did not respond.

It is made of recorded data, never of traces: it is complete without tracing, and after any crash. A
hop is listed once it has happened and was seen; a missing hop has not happened, unless `unknown`
lists the service that would know.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import asyncpg
from pydantic import BaseModel, ConfigDict

from orders_svc import user_messages
from orders_svc.order import publications
from orders_svc.order.contract import TOPIC
from orders_svc.order.order import UNKNOWN_ORDER, PlacedOrder, Status
from orders_svc.order.publications import CONSUMER, Publication
from orders_svc.service_clients import Cell, Reading, ServiceClients, UpstreamUnavailable
from shared.eventsourcing import event_log
from shared.eventsourcing.event_log import EventResponse
from shared.inbox import parked
from shared.messaging.messages import StreamKey
from shared.web.field_types import Amount

EVENTS_MAX = 100
"""More than an order can have."""

A_JOURNEY: dict[str, Any] = {
    "order_id": "01936f2a-7b00-7000-8000-000000000003",
    "status": "pending",
    "hops": [
        {
            "hop": "published",
            "at": "2016-11-11T00:00:01Z",
            "trace_id": "0af7651916cd43dd8448eb211c80319c",
            "type": "order-placed",
            "topic": "orders.v1",
            "partition": 3,
            "offset": 17,
        }
    ],
    "unknown": ["users-svc is unavailable: ConnectTimeout"],
}


class CellResponse(BaseModel):
    """What is counted of the user and an item of the order, in the order's hour."""

    item_id: UUID
    address: str
    purchases: int
    quantity: int
    amount: Amount


class HopResponse(BaseModel):
    """One step: `type` is that of the event, `process` the one in which a stream is parked.

    `at` of a published event is when it was seen in its topic. `cells` is what is counted of the
    order's items now, in its hour; it is empty if they were not bought where they come from, or
    were cancelled. `too-late` means that the hour was final already.
    """

    hop: Literal["recorded", "published", "credit-decided", "counted", "too-late", "parked"]
    at: datetime
    trace_id: str | None = None
    type: str | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    process: str | None = None
    reason: str | None = None
    batch_id: int | None = None
    hour: datetime | None = None
    cells: Sequence[CellResponse] | None = None


class JourneyResponse(BaseModel):
    """`hops` by time; `unknown` lists the services that did not respond."""

    model_config = ConfigDict(json_schema_extra={"examples": [A_JOURNEY]})

    order_id: UUID
    status: Status
    hops: Sequence[HopResponse]
    unknown: Sequence[str]


async def read_journey(
    pool: asyncpg.Pool, service_clients: ServiceClients, order: PlacedOrder, authorization: str
) -> JourneyResponse:
    """Combine the data of this service with what other services return for the caller's token."""
    page = await event_log.read_page(
        pool, order.order_id, after=0, limit=EVENTS_MAX, unknown=UNKNOWN_ORDER
    )
    published = await publications.list_by_order(pool, order.order_id)
    hops, unknown = await gather_hops(
        find_recorded(page.events, published),
        find_parked(pool, order),
        find_credit_decisions(service_clients, order, authorization),
        find_counted(service_clients, order, page.events, published, authorization),
    )
    return JourneyResponse(
        order_id=order.order_id,
        status=order.status,
        hops=sorted(hops, key=lambda hop: hop.at),
        unknown=unknown,
    )


async def gather_hops(*parts: Awaitable[list[HopResponse]]) -> tuple[list[HopResponse], list[str]]:
    """The known hops, and the reasons why others are unknown."""
    answers = await asyncio.gather(*parts, return_exceptions=True)
    hops: list[HopResponse] = []
    unknown: list[str] = []
    for answer in answers:
        if isinstance(answer, UpstreamUnavailable):
            unknown.append(str(answer))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            hops += answer
    return hops, unknown


async def find_recorded(
    events: Sequence[EventResponse], published: dict[int, Publication]
) -> list[HopResponse]:
    """Each event of the order, here and in its topic."""
    here = [
        HopResponse(hop="recorded", type=event.type, at=event.recorded_at, trace_id=event.trace_id)
        for event in events
    ]
    there = [
        HopResponse(
            hop="published",
            type=event.type,
            at=where.seen_at,
            trace_id=event.trace_id,
            topic=TOPIC,
            partition=where.partition,
            offset=where.record_offset,
        )
        for event in events
        if (where := published.get(event.version))
    ]
    return here + there


async def find_parked(pool: asyncpg.Pool, order: PlacedOrder) -> list[HopResponse]:
    """The order's own stream, and its user's, which has the decisions on the credit."""
    of_order = StreamKey(TOPIC, order.order_id)
    of_user = StreamKey(user_messages.TOPIC, order.user_id)
    return [
        HopResponse(hop="parked", at=each.parked_at, process=CONSUMER, reason=each.kind)
        for stream in (of_order, of_user)
        if (each := await parked.find_stream(pool, CONSUMER, stream))
    ]


async def find_credit_decisions(
    service_clients: ServiceClients, order: PlacedOrder, authorization: str
) -> list[HopResponse]:
    """Raises UpstreamUnavailable."""
    credit = await service_clients.get_credit(order.user_id, order.order_id, authorization)
    hops = [
        HopResponse(
            hop="credit-decided",
            type=decision.type,
            at=decision.recorded_at,
            trace_id=decision.trace_id,
            reason=decision.data.get("reason"),
        )
        for decision in credit.decisions
    ]
    if credit.parked:
        hops.append(
            HopResponse(
                hop="parked",
                at=credit.parked.at,
                process="users-worker",
                reason=credit.parked.reason,
            )
        )
    return hops


async def find_counted(
    service_clients: ServiceClients,
    order: PlacedOrder,
    events: Sequence[EventResponse],
    published: dict[int, Publication],
    authorization: str,
) -> list[HopResponse]:
    """What analytics has counted of a confirmation, and of a cancellation after it.

    Raises:
        UpstreamUnavailable: analytics returned no answer.
    """
    read = [
        (event, reading)
        for event in events
        if changes_count(event)
        and (where := published.get(event.version))
        and (reading := await find_reading(service_clients, event, where, authorization))
    ]
    if not read:
        return []
    hour = to_hour(order.ordered_at)
    cells = await service_clients.get_cells(hour, order.user_id, authorization)
    bought = {line.item_id for line in order.lines}
    now = [to_cell_response(cell) for cell in cells if cell.item_id in bought]
    return [to_counted_hop(reading, event, order, hour, now) for event, reading in read]


def changes_count(event: EventResponse) -> bool:
    """A cancellation counts only if the order did: a pending order has not been counted."""
    match event.type:
        case "order-confirmed":
            return True
        case "order-cancelled":
            return bool(event.data["was_confirmed"])
        case _:
            return False


async def find_reading(
    service_clients: ServiceClients, event: EventResponse, where: Publication, authorization: str
) -> Reading | None:
    return await service_clients.find_reading(
        TOPIC, where.partition, where.record_offset, event.recorded_at, authorization
    )


def to_hour(instant: datetime) -> datetime:
    return instant.replace(minute=0, second=0, microsecond=0)


def to_counted_hop(
    reading: Reading,
    event: EventResponse,
    order: PlacedOrder,
    hour: datetime,
    cells: Sequence[CellResponse],
) -> HopResponse:
    late = reading.watermark is not None and order.ordered_at <= reading.watermark
    return HopResponse(
        hop="too-late" if late else "counted",
        type=event.type,
        at=reading.committed_at,
        trace_id=reading.trace_id,
        batch_id=reading.batch_id,
        hour=hour,
        cells=None if late else cells,
    )


def to_cell_response(cell: Cell) -> CellResponse:
    return CellResponse(
        item_id=cell.item_id,
        address=cell.address,
        purchases=cell.purchases,
        quantity=cell.quantity,
        amount=cell.amount,
    )
