"""Read model: the items on offer. Follows items.v1."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

import asyncpg

from orders_svc.item.contract import CODEC
from shared.messages import Message
from shared.postgres import Connection

PROJECT = """
    INSERT INTO catalogue AS entry (item_id, name, type, origin, price, version)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (item_id) DO UPDATE
    SET name = excluded.name,
        type = excluded.type,
        origin = excluded.origin,
        price = excluded.price,
        version = excluded.version
    WHERE entry.version < excluded.version
"""

LIST = """
    SELECT item_id, name, type, origin, price
    FROM catalogue
    WHERE $1::uuid IS NULL OR item_id > $1
    ORDER BY item_id
    LIMIT $2
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    item_id: UUID
    name: str
    type: str
    origin: str
    price: Decimal


async def project(connection: Connection, message: Message) -> None:
    """Take one `item-listed` message; twice is once, late is nothing."""
    event = CODEC.decode(message.type, message.data)
    await connection.execute(
        PROJECT,
        event.item_id,
        event.name,
        event.type,
        event.origin,
        event.price,
        message.stream_version,
    )


async def list_items(
    pool: asyncpg.Pool, *, after: UUID | None, limit: int
) -> Sequence[CatalogueEntry]:
    """Items by id, those after the cursor `after`."""
    rows = await pool.fetch(LIST, after, limit)
    return [CatalogueEntry(**row) for row in rows]
