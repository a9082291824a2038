"""Read model: the last event of each thing. Follows things.v1."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from shared.messaging.messages import Message
from shared.projections.read_models import ReadModel
from shared.runtime.postgres import Connection
from things_svc.contract import CODEC, TOPIC

APPLY = """
    INSERT INTO thing_digest (thing_id, type, at, version)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (thing_id) DO UPDATE
    SET type = excluded.type, at = excluded.at, version = excluded.version
    WHERE thing_digest.version < excluded.version
"""

FIND = "SELECT type, at, version FROM thing_digest WHERE thing_id = $1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThingDigest:
    type: str
    at: datetime
    version: int


async def project(connection: Connection, messages: Sequence[Message]) -> None:
    """Apply messages of things.v1. Idempotent; ignores messages older than the row."""
    for message in messages:
        event = CODEC.read(message)
        await connection.execute(
            APPLY, event.thing_id, message.type, message.time, message.stream_version
        )


READ_MODEL = ReadModel(name="thing_digest", topic=TOPIC, types=tuple(CODEC.names), project=project)


async def find(pool: asyncpg.Pool, thing_id: UUID) -> ThingDigest | None:
    """The last event of a thing, as of a moment ago."""
    row = await pool.fetchrow(FIND, thing_id)
    return ThingDigest(**row) if row else None
