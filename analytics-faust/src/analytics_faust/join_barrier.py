"""What is joined with a table waits until the table knows what was known when it was read."""

import asyncio
from collections.abc import Mapping

import faust
from faust.types import TP, EventT

LOOK_SECONDS = 0.02
"""How often a record that waits looks whether it still has to."""


class TableOffsets:
    """How far the topics are read that feed tables, in the partitions that are ours."""

    def __init__(self, app: faust.App) -> None:
        self._app = app
        self._done: dict[TP, int] = {}

    def note(self, event: EventT[bytes]) -> None:
        """All that the record led to is done."""
        self._done[event.message.tp] = event.message.offset + 1

    def forget(self) -> None:
        """The partitions are about to be somebody else's."""
        self._done.clear()

    def read_to(self, place: TP) -> int:
        """The offset behind the last record that is in the table."""
        return max(self._done.get(place, 0), committed(self._app, place))

    async def ends(self, topic: str) -> Mapping[TP, int]:
        """Where the partitions of a topic that are ours end now."""
        consumer = self._app.consumer
        ours = [TP(*place) for place in consumer.assignment() if place.topic == topic]
        found = await consumer.highwaters(*ours)
        return {TP(*place): end or 0 for place, end in found.items()}


class JoinBarrier:
    """Lets each record of a stream wait for the topic that feeds its table, up to where that ended
    when the record was read.

    Without this it were chance whether a user who was registered before their order is known: after
    a rest, both topics are read at once.
    """

    def __init__(self, app: faust.App, tables: TableOffsets, topic: str) -> None:
        self._app = app
        self._tables = tables
        self._topic = topic
        self._ends: Mapping[TP, int] = {}
        self._covered = 0
        self._generation: int | None = None

    async def wait(self, event: EventT[bytes], following: int) -> bool:
        """True when the record may be joined; False when it is not ours any more.

        `following` records are in the queue behind it. They were read by now as well, so that one
        look at the ends is enough for all of them.
        """
        generation = event.message.generation_id
        if not self._covered or self._generation != generation:
            self._ends = await self._tables.ends(self._topic)
            self._covered, self._generation = 1 + following, generation
        self._covered -= 1
        place = TP(self._topic, event.message.partition)
        while self._tables.read_to(place) < self._ends.get(place, 0):
            await asyncio.sleep(LOOK_SECONDS)
            if generation != self._app.consumer_generation_id:
                return False
        return generation == self._app.consumer_generation_id


def committed(app: faust.App, place: TP) -> int:
    """The offset that Faust has found when it began, or committed since then."""
    offsets: Mapping[TP, int | None] = app.consumer._committed_offset  # type: ignore[attr-defined]
    return offsets[place] or 0
