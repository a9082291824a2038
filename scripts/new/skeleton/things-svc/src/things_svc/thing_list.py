"""Read model: all things with their names. Follows things.v1."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never
from uuid import UUID

import asyncpg

from shared.messaging.messages import Message
from shared.projections.read_models import ReadModel
from shared.runtime.postgres import Connection
from things_svc.contract import CODEC, TOPIC
from things_svc.events import ThingAdded, ThingApproved, ThingRenamed, ThingSettled

ADDED = """
    INSERT INTO thing_list (thing_id, name, version)
    VALUES ($1, $2, $3)
    ON CONFLICT DO NOTHING
"""

RENAMED = """
    UPDATE thing_list
    SET name = $2, version = $3
    WHERE thing_id = $1 AND version < $3
"""

LIST = """
    SELECT thing_id, name
    FROM thing_list
    WHERE thing_id > coalesce($1::uuid, '00000000-0000-0000-0000-000000000000')
    ORDER BY thing_id
    LIMIT $2
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedThing:
    thing_id: UUID
    name: str


async def project(connection: Connection, messages: Sequence[Message]) -> None:
    """Apply messages of things.v1. Idempotent; ignores messages older than the row."""
    for message in messages:
        await apply(connection, message)


async def apply(connection: Connection, message: Message) -> None:
    event, version = CODEC.read(message), message.stream_version
    match event:
        case ThingAdded():
            await connection.execute(ADDED, event.thing_id, event.name, version)
        case ThingRenamed():
            await connection.execute(RENAMED, event.thing_id, event.name, version)
        case ThingApproved():
            pass
        case ThingSettled():
            pass
        case _:
            assert_never(event)


READ_MODEL = ReadModel(name="thing_list", topic=TOPIC, types=tuple(CODEC.names), project=project)


async def list_things(
    pool: asyncpg.Pool, *, after: UUID | None, limit: int
) -> Sequence[ListedThing]:
    """Things by id, those after the cursor `after`."""
    rows = await pool.fetch(LIST, after, limit)
    return [ListedThing(**row) for row in rows]
