"""Read model: orders by user and by status, from orders.v1."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import assert_never
from uuid import UUID

import asyncpg

from orders_svc.order.contract import CODEC, TOPIC
from orders_svc.order.events import OrderCancelled, OrderConfirmed, OrderPlaced, OrderRejected
from orders_svc.order.order import Status
from shared.messaging.messages import Message
from shared.projections.read_models import ReadModel
from shared.runtime.postgres import Connection

PLACED = """
    INSERT INTO order_summaries
        (order_id, user_id, status, amount, ordered_at, placed_at, version)
    SELECT order_id, user_id, 'pending', amount, ordered_at, placed_at, version
    FROM unnest($1::uuid[], $2::uuid[], $3::numeric[], $4::timestamptz[], $5::timestamptz[],
                $6::integer[])
        AS placed (order_id, user_id, amount, ordered_at, placed_at, version)
    ON CONFLICT DO NOTHING
"""

DECIDED = """
    UPDATE order_summaries
    SET status = decided.status, reason = decided.reason, version = decided.version
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::integer[])
        AS decided (order_id, status, reason, version)
    WHERE order_summaries.order_id = decided.order_id
      AND order_summaries.version < decided.version
"""

COUNT_PENDING = """
    SELECT count(*) AS orders,
           greatest($1 - min(placed_at), interval '0') AS age
    FROM (
        SELECT placed_at
        FROM order_summaries
        WHERE status = 'pending'
        ORDER BY placed_at
        LIMIT $2
    ) AS pending
"""

# One statement for each index: a statement is planned without its values (`postgres.open_pool`).
LIST, LIST_OF_USER, LIST_PENDING = (
    f"""
    SELECT order_id, user_id, status, reason, amount, ordered_at
    FROM order_summaries
    WHERE {condition}
      AND ($2::text IS NULL OR status = $2)
      AND order_id > coalesce($3::uuid, '00000000-0000-0000-0000-000000000000')
    ORDER BY order_id
    LIMIT $4
    """  # noqa: S608
    for condition in ("$1::uuid IS NULL", "user_id = $1", "$1::uuid IS NULL AND status = 'pending'")
)

OVERDUE = """
    SELECT order_id, placed_at
    FROM order_summaries
    WHERE status = 'pending' AND placed_at < $1
      AND (placed_at, order_id) > (
          coalesce($2::timestamptz, '-infinity'),
          coalesce($3::uuid, '00000000-0000-0000-0000-000000000000')
      )
    ORDER BY placed_at, order_id
    LIMIT $4
"""


Row = tuple[object, ...]
"""The values of one order in the order of a statement's parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSummary:
    order_id: UUID
    user_id: UUID
    status: Status
    reason: str | None
    amount: Decimal
    ordered_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingOrders:
    """`age` is how long the oldest of them has waited; zero without any."""

    orders: int
    age: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class OverdueOrder:
    order_id: UUID
    placed_at: datetime


async def project(connection: Connection, messages: Sequence[Message]) -> None:
    """Apply messages of orders.v1. Idempotent; ignores messages older than the row."""
    placed: list[Row] = []
    decided: dict[UUID, tuple[int, Row]] = {}
    for message in messages:
        event, version = CODEC.read(message), message.stream_version
        match event:
            case OrderPlaced():
                placed.append(to_placed(event, message.time, version))
            case OrderConfirmed() | OrderRejected() | OrderCancelled():
                if version > decided.get(event.order_id, (0, ()))[0]:
                    decided[event.order_id] = version, to_decided(event, version)
            case _:
                assert_never(event)
    if placed:
        await connection.execute(PLACED, *zip(*placed, strict=True))
    if decided:
        rows = [row for _, row in decided.values()]
        await connection.execute(DECIDED, *zip(*rows, strict=True))


def to_placed(event: OrderPlaced, placed_at: datetime, version: int) -> Row:
    return (event.order_id, event.user_id, event.amount, event.ordered_at, placed_at, version)


def to_decided(event: OrderConfirmed | OrderRejected | OrderCancelled, version: int) -> Row:
    match event:
        case OrderConfirmed():
            return (event.order_id, "confirmed", None, version)
        case OrderRejected():
            return (event.order_id, "rejected", event.reason, version)
        case OrderCancelled():
            return (event.order_id, "cancelled", event.reason, version)
        case _:
            assert_never(event)


READ_MODEL = ReadModel(
    name="order_summaries", topic=TOPIC, types=tuple(CODEC.names), project=project
)


async def list_orders(
    pool: asyncpg.Pool,
    *,
    user_id: UUID | None,
    status: Status | None,
    after: UUID | None,
    limit: int,
) -> Sequence[OrderSummary]:
    """Orders by id, which is the sequence of their placement; those after the cursor `after`."""
    if user_id is not None:
        statement = LIST_OF_USER
    else:
        statement = LIST_PENDING if status == "pending" else LIST
    rows = await pool.fetch(statement, user_id, status, after, limit)
    return [OrderSummary(**row) for row in rows]


async def list_overdue(
    pool: asyncpg.Pool,
    *,
    now: datetime,
    limit: timedelta,
    after: OverdueOrder | None,
    orders_max: int,
) -> Sequence[OverdueOrder]:
    """Orders that have been pending for longer than `limit`, oldest first, those after `after`."""
    begin = (after.placed_at, after.order_id) if after else (None, None)
    rows = await pool.fetch(OVERDUE, now - limit, *begin, orders_max)
    return [OverdueOrder(**row) for row in rows]


async def count_pending(pool: asyncpg.Pool, *, now: datetime, orders_max: int) -> PendingOrders:
    """Count pending orders, `orders_max` at most."""
    row = await pool.fetchrow(COUNT_PENDING, now, orders_max)
    assert row is not None  # one row
    return PendingOrders(**row)
