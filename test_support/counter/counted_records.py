"""Records of counters as read from Kafka, and a reaction whose effects can be counted."""

from uuid import UUID, uuid5

import asyncpg

from shared.messaging import wire
from shared.messaging.messages import Message
from shared.messaging.records import IncomingRecord
from shared.outbox.outbox import OutboxRow
from shared.runtime.postgres import Connection
from test_support.counter.counter import CODEC, TOPIC, Counted
from test_support.raw_records import event_headers

CREATE_EFFECTS = """
    CREATE TABLE effects (
        number bigint GENERATED ALWAYS AS IDENTITY,
        stream_id uuid NOT NULL,
        version integer NOT NULL
    )
"""
"""No key: an event that is applied twice is there twice."""


def record(
    counter: UUID,
    version: int,
    *,
    previous: int | None = None,
    type_: str = "counted",
    schema_version: int = 1,
    value: bytes | None = None,
) -> IncomingRecord:
    """Number `version` of a counter, each time the same event; the one before is `previous`, else
    `version` - 1."""
    headers = event_headers(type_, counter, version) | {
        "ce_id": str(uuid5(counter, str(version))),
        "ce_schemaversion": str(schema_version),
    }
    if previous is not None:
        headers["ce_previousversion"] = str(previous)
    event = Counted(counter_id=counter, number=version)
    return IncomingRecord(
        topic=TOPIC,
        partition=2,
        offset=version,
        key=str(counter).encode(),
        value=CODEC.encode(event) if value is None else value,
        headers=[(name, value.encode()) for name, value in headers.items()],
    )


def records(counter: UUID, *versions: int) -> list[IncomingRecord]:
    return [record(counter, version) for version in versions]


def as_read(row: OutboxRow) -> IncomingRecord:
    """A row of the outbox as a consumer would read it."""
    return IncomingRecord(
        topic=row.topic,
        partition=row.partition,
        offset=row.position,
        key=row.key,
        value=row.value,
        headers=wire.unpack(row.headers),
    )


async def apply_effect(connection: Connection, message: Message) -> None:
    """One row more. Raises ValueError where the value is no counted event."""
    CODEC.read(message)
    await connection.execute(
        "INSERT INTO effects (stream_id, version) VALUES ($1, $2)",
        message.stream_id,
        message.stream_version,
    )


async def effects_of(pool: asyncpg.Pool, counter: UUID) -> list[int]:
    """The versions that were applied, in that order."""
    rows = await pool.fetch(
        "SELECT version FROM effects WHERE stream_id = $1 ORDER BY number", counter
    )
    return [row["version"] for row in rows]
