"""The offsets of an order's events in orders.v1, recorded by the consumer that has read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from orders_svc.order.contract import TOPIC
from shared.messaging.messages import Message
from shared.runtime.postgres import Connection

CONSUMER = "orders-worker"
"""The consumer that reads them."""

NOTE = """
    INSERT INTO publications (stream_id, version, partition, record_offset)
    SELECT * FROM unnest($1::uuid[], $2::integer[], $3::smallint[], $4::bigint[])
    ON CONFLICT DO NOTHING
"""

# The topic was lost and is published again: the worker reads each of these orders from its first
# event on, and records where it is now. Its other reactions are read models, which drop repeats.
FORGET = f"""
    WITH forgotten AS (DELETE FROM publications RETURNING stream_id)
    DELETE FROM consumed_versions
    WHERE consumer = '{CONSUMER}' AND topic IN ('{TOPIC}', '')
      AND stream_id IN (SELECT stream_id FROM forgotten)
"""  # noqa: S608

OF_ORDER = """
    SELECT version, partition, record_offset, seen_at
    FROM publications
    WHERE stream_id = $1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """One record of orders.v1, and when it was seen there."""

    version: int
    partition: int
    record_offset: int
    seen_at: datetime


async def note(connection: Connection, messages: Sequence[Message]) -> None:
    """Record where these messages are."""
    await connection.execute(
        NOTE,
        [message.stream_id for message in messages],
        [message.stream_version for message in messages],
        [message.partition for message in messages],
        [message.offset for message in messages],
    )


async def list_by_order(pool: asyncpg.Pool, order_id: UUID) -> dict[int, Publication]:
    """The publications of an order by the version of the event."""
    rows = await pool.fetch(OF_ORDER, order_id)
    return {row["version"]: Publication(**row) for row in rows}
