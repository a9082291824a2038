"""A record waits to be joined until the table has all that was in its topic at the time."""

import asyncio
from collections.abc import Mapping

import faust
from faust.types import TP, EventT

POLL_SECONDS = 0.02
"""How often a waiting record checks the offsets of its table."""


class TableOffsets:
    """How far the topics that feed tables are read, in the partitions assigned to this worker."""

    def __init__(self, app: faust.App) -> None:
        self._app = app
        self._done: dict[TP, int] = {}

    def mark_done(self, event: EventT[bytes]) -> None:
        """Note that the record is processed, and that its writes are acknowledged."""
        self._done[event.message.tp] = event.message.offset + 1

    def forget(self) -> None:
        """Drop all offsets: the partitions are being revoked."""
        self._done.clear()

    def get_offset(self, partition: TP) -> int:
        """The offset after the last record that is in the table."""
        return max(self._done.get(partition, 0), get_committed_offset(self._app, partition))

    async def fetch_ends(self, topic: str) -> Mapping[TP, int]:
        """The current end offsets of the assigned partitions of a topic."""
        consumer = self._app.consumer
        assigned = [TP(*each) for each in consumer.assignment() if each.topic == topic]
        found = await consumer.highwaters(*assigned)
        return {TP(*each): end or 0 for each, end in found.items()}


class JoinBarrier:
    """Delays each record of a stream until the topic that feeds its table is read up to where that
    topic ended when the record was read.

    Without it, chance decides whether a user who registered before their order is found: after a
    pause, both topics are read at once.
    """

    def __init__(self, app: faust.App, tables: TableOffsets, topic: str) -> None:
        self._app = app
        self._tables = tables
        self._topic = topic
        self._ends: Mapping[TP, int] = {}
        self._covered = 0
        self._generation: int | None = None

    async def wait(self, event: EventT[bytes], following: int) -> bool:
        """True when the record can be joined; False when its partition was revoked meanwhile.

        `following` is the number of records queued behind it. They are read as well by now, so one
        request for the end offsets covers all of them.
        """
        generation = event.message.generation_id
        if not self._covered or self._generation != generation:
            self._ends = await self._tables.fetch_ends(self._topic)
            self._covered, self._generation = 1 + following, generation
        self._covered -= 1
        partition = TP(self._topic, event.message.partition)
        while self._tables.get_offset(partition) < self._ends.get(partition, 0):
            await asyncio.sleep(POLL_SECONDS)
            if generation != self._app.consumer_generation_id:
                return False
        return generation == self._app.consumer_generation_id


def get_committed_offset(app: faust.App, partition: TP) -> int:
    """The offset that Faust found at its start, or committed since then."""
    offsets: Mapping[TP, int | None] = app.consumer._committed_offset  # type: ignore[attr-defined]
    return offsets[partition] or 0
