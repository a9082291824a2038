"""How far consumers came in each stream: the table `consumed_versions`.

A version is noted in the transaction of the effects of its message. That makes each message take
effect once, however often it is delivered.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from shared.messaging.messages import Message
from shared.runtime.postgres import Connection

KNOWN = """
    SELECT stream_id, version
    FROM consumed_versions
    WHERE consumer = $1 AND stream_id = ANY($2)
"""

# Only over the version that was read: whoever finds another one has not consumed this stream alone.
NOTE = """
    WITH noted AS (
        SELECT * FROM unnest($2::uuid[], $3::integer[], $4::integer[])
            AS noted (stream_id, version_before, version)
    ), added AS (
        INSERT INTO consumed_versions (consumer, stream_id, version)
        SELECT $1, stream_id, version FROM noted WHERE version_before = 0
        ON CONFLICT DO NOTHING
        RETURNING stream_id
    ), moved AS (
        UPDATE consumed_versions AS known
        SET version = noted.version
        FROM noted
        WHERE known.consumer = $1 AND known.stream_id = noted.stream_id
          AND known.version = noted.version_before
        RETURNING known.stream_id
    )
    SELECT (SELECT count(*) FROM added) + (SELECT count(*) FROM moved)
"""


class ConsumedElsewhere(Exception):
    """Another process of the same consumer took the same stream meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The versions of the streams of one transaction: as they were read, and as they are now."""

    connection: Connection
    consumer: str
    before: dict[UUID, int]
    now: dict[UUID, int] = field(default_factory=dict)

    def version_of(self, stream_id: UUID) -> int:
        """Of the last message that was taken; 0 when none was."""
        return self.now.get(stream_id, self.before.get(stream_id, 0))

    def has(self, message: Message) -> bool:
        """Whether the message was taken before."""
        return message.stream_version <= self.version_of(message.stream_id)

    def gap_before(self, message: Message) -> int | None:
        """The version that is missing between what was taken and this message."""
        previous = message.previous_version
        if previous is not None and previous > self.version_of(message.stream_id):
            return previous
        return None

    def note(self, message: Message) -> None:
        """The message is taken."""
        self.now[message.stream_id] = message.stream_version

    async def write(self) -> None:
        """Keep what was noted.

        Raises:
            ConsumedElsewhere: a version is not what it was when it was read.
        """
        if not self.now:
            return
        streams = sorted(self.now)
        written = await self.connection.fetchval(
            NOTE,
            self.consumer,
            streams,
            [self.before.get(stream_id, 0) for stream_id in streams],
            [self.now[stream_id] for stream_id in streams],
        )
        if written < len(streams):
            raise ConsumedElsewhere(f"{len(streams) - written} of {len(streams)} streams")


async def open_ledger(connection: Connection, consumer: str, streams: Iterable[UUID]) -> Ledger:
    """The versions of some streams, for one transaction."""
    rows = await connection.fetch(KNOWN, consumer, list(streams))
    before = {row["stream_id"]: row["version"] for row in rows}
    return Ledger(connection=connection, consumer=consumer, before=before)
