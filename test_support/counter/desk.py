"""A consumer of counters over a database, without a broker, and its outcome."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from shared.eventsourcing.recorded import Recorded
from shared.inbox import parked
from shared.inbox.consumer import Consumer, Delivery
from shared.messaging import wire
from shared.messaging.messages import Message, StreamKey
from shared.messaging.wire import OutgoingRecord
from shared.runtime.identifiers import new_id
from shared.runtime.postgres import Connection
from shared.runtime.relay_notifier import RelayNotifier
from test_support.counter.counted_records import apply_effect, effects_of
from test_support.counter.counter import TOPIC

NAME = "users-worker"


def to_recorded(message: Message) -> Recorded:
    """As if the effect of a message were an event."""
    return Recorded(
        stream_id=message.stream_id,
        stream_version=message.stream_version,
        event_type="effect",
        event_id=new_id(),
        correlation_id=message.correlation_id,
        trace={},
    )


class CountingNotifier(RelayNotifier):
    """Counts its notifications."""

    def __init__(self) -> None:
        super().__init__(None)
        self.count = 0

    def notify(self) -> None:
        self.count += 1


class Desk:
    """A consumer of counters, and its outcome."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self.pool = pool
        self.errors: list[Exception] = []
        self.poison: set[UUID] = set()
        self.complaint = "cannot be"
        self.letters: list[OutgoingRecord] = []
        self.letter_errors: list[Exception] = []
        self.attempts = 0
        self.notifier = CountingNotifier()
        reactions = {TOPIC: {"counted": [self.react]}}
        self.consumer = Consumer(NAME, pool, reactions, self.write_dead_letters, self.notifier)

    def consumer_of(self, *topics: str) -> Consumer:
        """The same consumer, of other topics."""
        reactions = {topic: {"counted": [self.react]} for topic in topics}
        return Consumer(NAME, self.pool, reactions, self.write_dead_letters, self.notifier)

    async def react(
        self, connection: Connection, deliveries: Sequence[Delivery]
    ) -> Sequence[Recorded]:
        for each in deliveries:
            self.attempts += 1
            await apply_effect(connection, each.message)
            if self.errors:
                raise self.errors.pop(0)
            if each.message.stream_id in self.poison:
                raise ValueError(self.complaint)
        return [to_recorded(each.message) for each in deliveries]

    async def write_dead_letters(self, letters: Sequence[OutgoingRecord]) -> None:
        if self.letter_errors:
            raise self.letter_errors.pop(0)
        self.letters.extend(letters)

    async def effects(self, counter: UUID) -> list[int]:
        return await effects_of(self.pool, counter)

    async def version(self, counter: UUID) -> int | None:
        version: int | None = await self.pool.fetchval(
            "SELECT version FROM consumed_versions WHERE consumer = $1 AND stream_id = $2",
            NAME,
            counter,
        )
        return version

    async def reasons(self) -> dict[UUID, str]:
        streams = await parked.list_streams(self.pool, NAME)
        return {stream.stream_id: stream.reason for stream in streams}

    async def waiting(self, counter: UUID) -> list[int]:
        messages = await parked.list_messages(self.pool, NAME, StreamKey(TOPIC, counter), 100)
        return [message.version for message in messages]

    def letter_reasons(self) -> list[str]:
        return [dict(wire.unpack(letter.headers))["dlq_reason"].decode() for letter in self.letters]
