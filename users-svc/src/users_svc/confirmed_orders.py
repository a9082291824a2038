"""The confirmed orders of a user, from orders.v1: the decision to delete a user needs them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from shared.messaging.messages import Message
from shared.runtime.postgres import Connection
from users_svc.order_messages import CLOSED, CONFIRMED, OrderClosed, OrderConfirmed

TYPES = (*CONFIRMED.names, *CLOSED.names)

ADD = """
    INSERT INTO confirmed_orders (user_id, order_id, ordered_at)
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[])
    ON CONFLICT DO NOTHING
"""

REMOVE = """
    DELETE FROM confirmed_orders
    USING unnest($1::uuid[], $2::uuid[]) AS closed (user_id, order_id)
    WHERE confirmed_orders.user_id = closed.user_id
      AND confirmed_orders.order_id = closed.order_id
"""

OF_USER = "SELECT order_id, ordered_at FROM confirmed_orders WHERE user_id = $1"


async def project(connection: Connection, messages: Sequence[Message]) -> None:
    """Apply messages of orders.v1. An order is confirmed before it is cancelled, if at all."""
    await add(connection, [CONFIRMED.read(m) for m in messages if m.type in CONFIRMED.names])
    await remove(connection, [CLOSED.read(m) for m in messages if m.type in CLOSED.names])


async def add(connection: Connection, orders: Sequence[OrderConfirmed]) -> None:
    if orders:
        await connection.execute(
            ADD,
            [order.user_id for order in orders],
            [order.order_id for order in orders],
            [order.ordered_at for order in orders],
        )


async def remove(connection: Connection, orders: Sequence[OrderClosed]) -> None:
    if orders:
        await connection.execute(
            REMOVE, [order.user_id for order in orders], [order.order_id for order in orders]
        )


async def list_by_user(pool: asyncpg.Pool, user_id: UUID) -> Mapping[UUID, datetime]:
    """The time of each order, or a later one if it was confirmed before times were stored."""
    return {row["order_id"]: row["ordered_at"] for row in await pool.fetch(OF_USER, user_id)}
