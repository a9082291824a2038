"""The confirmed orders of a user, from orders.v1: the decision to delete a user needs them."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

import asyncpg

from shared.runtime.postgres import Connection

ADD = """
    INSERT INTO confirmed_orders (user_id, order_id, ordered_at)
    VALUES ($1, $2, $3)
    ON CONFLICT DO NOTHING
"""

REMOVE = "DELETE FROM confirmed_orders WHERE user_id = $1 AND order_id = $2"

OF_USER = "SELECT order_id, ordered_at FROM confirmed_orders WHERE user_id = $1"


async def add(connection: Connection, user_id: UUID, order_id: UUID, ordered_at: datetime) -> None:
    await connection.execute(ADD, user_id, order_id, ordered_at)


async def remove(connection: Connection, user_id: UUID, order_id: UUID) -> None:
    await connection.execute(REMOVE, user_id, order_id)


async def list_by_user(pool: asyncpg.Pool, user_id: UUID) -> Mapping[UUID, datetime]:
    """The time of each order, or a later one if it was confirmed before times were stored."""
    return {row["order_id"]: row["ordered_at"] for row in await pool.fetch(OF_USER, user_id)}
