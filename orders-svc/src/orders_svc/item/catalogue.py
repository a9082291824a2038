"""Read model: the listed items, from items.v1."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import assert_never
from uuid import UUID

import asyncpg

from orders_svc.item.contract import CODEC, TOPIC
from orders_svc.item.events import ItemDelisted, ItemListed, ItemOriginCorrected, ItemRepriced
from shared.messaging.messages import Message
from shared.projections.read_models import ReadModel
from shared.runtime.postgres import Connection

LISTED = """
    INSERT INTO catalogue (item_id, name, type, origin, price, delisted, origin_since, price_since,
                           version)
    VALUES ($1, $2, $3, $4, $5, false, $6, $6, $7)
    ON CONFLICT DO NOTHING
"""

# A change that is effective before the last known one does not change the present value. Times
# are compared in milliseconds.
REPRICED = """
    UPDATE catalogue
    SET price = CASE WHEN date_trunc('milliseconds', price_since) <= $2 THEN $3 ELSE price END,
        price_since = greatest(price_since, $2),
        version = $4
    WHERE item_id = $1 AND version < $4
"""

ORIGIN_CORRECTED = """
    UPDATE catalogue
    SET origin = CASE WHEN date_trunc('milliseconds', origin_since) <= $2 THEN $3 ELSE origin END,
        origin_since = greatest(origin_since, $2),
        version = $4
    WHERE item_id = $1 AND version < $4
"""

DELISTED = """
    UPDATE catalogue
    SET delisted = true, version = $2
    WHERE item_id = $1 AND version < $2
"""

LIST = """
    SELECT item_id, name, type, origin, price
    FROM catalogue
    WHERE NOT delisted
      AND item_id > coalesce($1::uuid, '00000000-0000-0000-0000-000000000000')
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


async def project(connection: Connection, messages: Sequence[Message]) -> None:
    """Apply messages of items.v1. Idempotent; ignores messages older than the row."""
    for message in messages:
        await apply(connection, message)


async def apply(connection: Connection, message: Message) -> None:
    event, version = CODEC.read(message), message.stream_version
    item = event.item_id
    match event:
        case ItemListed():
            await connection.execute(
                LISTED,
                item,
                event.name,
                event.type,
                event.origin,
                event.price,
                event.effective_at,
                version,
            )
        case ItemRepriced():
            await connection.execute(REPRICED, item, event.effective_at, event.price, version)
        case ItemOriginCorrected():
            await connection.execute(
                ORIGIN_CORRECTED, item, event.effective_at, event.origin, version
            )
        case ItemDelisted():
            await connection.execute(DELISTED, item, version)
        case _:
            assert_never(event)


READ_MODEL = ReadModel(name="catalogue", topic=TOPIC, types=tuple(CODEC.names), project=project)


async def list_items(
    pool: asyncpg.Pool, *, after: UUID | None, limit: int
) -> Sequence[CatalogueEntry]:
    """Items by id, those after the cursor `after`; without delisted ones."""
    rows = await pool.fetch(LIST, after, limit)
    return [CatalogueEntry(**row) for row in rows]
