"""Streams with a record that the broker refuses permanently: they wait, all others continue.

They are in the tables `parked_streams` and `parked_messages`, under the name of the relay, and
`parked --relay` lists and redrives them. Only the relay that holds the lease adds to them and sends
what waits, so that nothing overtakes: a redrive is a request to it.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

import asyncpg
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError

from shared.messaging import messages, wire
from shared.messaging.wire import OutgoingRecord
from shared.outbox.lease import Lease
from shared.outbox.outbox import OutboxRow

log = logging.getLogger(__name__)

PERMANENT = (MessageSizeTooLargeError, RecordListTooLargeError)
"""Refusals that are due to the record. A refused timestamp is not among them: a record is never
stamped ahead of the database's clock, so the clock of the broker is wrong, for all records that go
to it. Topics are declared without that limit."""

RECORDS_MAX = 100
"""Of a parked stream, sent at once in a redrive."""
REASON_CHARACTERS_MAX = 1000

PARKED = "SELECT stream_id FROM parked_streams WHERE consumer = $1"

PARK = """
    INSERT INTO parked_streams AS known (consumer, stream_id, topic, reason, parked_at)
    VALUES ($1, $2, $3, $4, now())
    ON CONFLICT (consumer, stream_id, topic) DO UPDATE SET reason = known.reason
"""

# After a crash the rows since the last checkpoint are read again.
ADD_RECORD = """
    INSERT INTO parked_messages (consumer, stream_id, version, event_id, topic, partition,
                                 record_offset, key, value, headers, parked_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now())
    ON CONFLICT DO NOTHING
"""

REQUESTED = """
    SELECT stream_id
    FROM parked_streams
    WHERE consumer = $1 AND redrive_at IS NOT NULL
    ORDER BY redrive_at
"""

WAITING = """
    SELECT version, topic, partition, key, value, headers, discarded, parked_at
    FROM parked_messages
    WHERE consumer = $1 AND stream_id = $2
    ORDER BY version
    LIMIT $3
"""

REMOVE_RECORDS = """
    DELETE FROM parked_messages
    WHERE consumer = $1 AND stream_id = $2 AND version = ANY($3)
"""

RELEASE = "DELETE FROM parked_streams WHERE consumer = $1 AND stream_id = $2"

KEEP = """
    UPDATE parked_streams
    SET reason = $3, redrive_at = NULL
    WHERE consumer = $1 AND stream_id = $2
"""


class RefusedStreams:
    """The parked streams of a relay while it holds the lease.

    `reading` is held while something else uses the connection.
    """

    def __init__(
        self, connection: asyncpg.Connection, reading: asyncio.Lock, name: str, held: Lease
    ) -> None:
        self._connection = connection
        self._reading = reading
        self._name = name
        self._lease = held
        self._streams: set[UUID] = set()

    def __bool__(self) -> bool:
        return bool(self._streams)

    async def load(self) -> None:
        """Read the streams that an earlier holder of the lease has parked."""
        async with self._reading:
            rows = await self._connection.fetch(PARKED, self._name)
        self._streams = {row["stream_id"] for row in rows}

    async def park(self, row: OutboxRow, error: KafkaError) -> None:
        """Let the stream of a refused row wait from this row on.

        Raises:
            LeaseLost: another relay may be active.
        """
        stream_id = get_stream_id(row)
        reason = f"{type(error).__name__}: {error}"[:REASON_CHARACTERS_MAX]
        about = {"stream_id": stream_id, "topic": row.topic}
        log.error("the stream is parked: %s", reason, extra=about)
        async with self._transaction():
            await self._connection.execute(PARK, self._name, stream_id, row.topic, reason)
            await self._add([row])
        self._streams.add(stream_id)

    async def hold_back(self, rows: Sequence[OutboxRow]) -> Sequence[OutboxRow]:
        """Let the rows of parked streams wait; return the others.

        Raises:
            LeaseLost: another relay may be active.
        """
        if not self._streams:
            return rows
        of_parked = [row for row in rows if get_stream_id(row) in self._streams]
        if not of_parked:
            return rows
        async with self._transaction():
            await self._add(of_parked)
        return [row for row in rows if get_stream_id(row) not in self._streams]

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[None]:
        async with self._reading, self._connection.transaction():
            await self._lease.hold(self._connection)
            yield

    async def _add(self, rows: Iterable[OutboxRow]) -> None:
        await self._connection.executemany(ADD_RECORD, [self._to_values(row) for row in rows])

    def _to_values(self, row: OutboxRow) -> tuple[object, ...]:
        headers = {name: value.decode() for name, value in wire.unpack(row.headers)}
        return (
            self._name,
            UUID(headers[messages.STREAM_ID]),
            int(headers[messages.STREAM_VERSION]),
            UUID(headers[messages.ID]),
            row.topic,
            row.partition,
            row.position,
            row.key,
            row.value,
            json.dumps(list(headers.items())),
        )

    async def find_requested(self) -> list[UUID]:
        """The streams that an operator wants to continue."""
        async with self._reading:
            rows = await self._connection.fetch(REQUESTED, self._name)
        return [row["stream_id"] for row in rows]

    async def read_waiting(self, stream_id: UUID) -> tuple[list[int], list[OutgoingRecord]]:
        """The next versions that wait, at most RECORDS_MAX, and the records of those that were not
        discarded."""
        async with self._reading:
            rows = await self._connection.fetch(WAITING, self._name, stream_id, RECORDS_MAX)
        versions = [row["version"] for row in rows]
        return versions, [to_record(row) for row in rows if not row["discarded"]]

    async def remove(self, stream_id: UUID, versions: Sequence[int]) -> None:
        """Forget what was sent. Raises LeaseLost."""
        async with self._transaction():
            await self._connection.execute(REMOVE_RECORDS, self._name, stream_id, versions)

    async def release(self, stream_id: UUID) -> None:
        """Continue a stream of which nothing waits any more. Raises LeaseLost."""
        async with self._transaction():
            await self._connection.execute(RELEASE, self._name, stream_id)
        self._streams.discard(stream_id)
        log.info("the stream continues", extra={"stream_id": stream_id})

    async def keep(self, stream_id: UUID, error: KafkaError) -> None:
        """Let a stream wait that was refused again."""
        reason = f"{type(error).__name__}: {error}"[:REASON_CHARACTERS_MAX]
        log.error("the stream stays parked: %s", reason, extra={"stream_id": stream_id})
        async with self._reading:
            await self._connection.execute(KEEP, self._name, stream_id, reason)


def get_stream_id(row: OutboxRow) -> UUID:
    [value] = [value for name, value in wire.unpack(row.headers) if name == messages.STREAM_ID]
    return UUID(value.decode())


def to_record(row: asyncpg.Record) -> OutgoingRecord:
    """With the timestamp that it would have had: its event's, not ahead of the database's clock."""
    headers = json.loads(row["headers"])
    recorded_at = datetime.fromisoformat(dict(headers)[messages.TIME])
    return OutgoingRecord(
        topic=row["topic"],
        partition=row["partition"],
        key=row["key"],
        value=row["value"],
        headers=wire.pack([(name, value.encode()) for name, value in headers]),
        milliseconds=int(min(recorded_at, row["parked_at"]).timestamp() * 1000),
    )
