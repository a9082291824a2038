"""Partitions that take no records now: they fall behind the others, which go on.

A partition without a leader, or with too few replicas, can be like this for hours. Its rows wait
in the outbox; what it has is a checkpoint of its own. It is tried again by itself, gets what it
lacks in order, and goes on with the others when it is level with them.

These checkpoints are not stored. The stored one stays at what all partitions have, so that the
next relay that publishes, also one of an earlier release, sends everything from there.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import asyncpg

from shared.messaging.wire import Target
from shared.outbox import outbox
from shared.outbox.outbox import OutboxRow, RelayCheckpoint, Snapshot
from shared.runtime.logs import CAUSE

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Behind:
    """A partition that is behind: it has what is visible in `done`. `is_level` if it takes records
    again, and had all that the others had a moment ago."""

    target: Target
    done: RelayCheckpoint
    reason: str
    is_level: bool = False

    async def read_next(
        self, connection: asyncpg.Connection, upto: Snapshot, rows_max: int
    ) -> Sequence[OutboxRow]:
        """The next rows that it lacks, by position; none when it has what is visible in `upto`."""
        while self.done.target is not None or self.done.published != upto:
            if self.done.target is None:
                floor = await outbox.read_window_floor(connection, self.done.published)
                self.done = replace(self.done, target=upto.text, floor=floor)
            if rows := await outbox.read_page(connection, self.done, rows_max, self.target):
                return rows
            assert self.done.target is not None
            self.done = RelayCheckpoint(Snapshot.parse(self.done.target))
        return ()

    def note_sent(self, rows: Sequence[OutboxRow]) -> None:
        """It has taken what `read_next` returned."""
        if rows:
            self.done = replace(self.done, floor=rows[-1].position)

    def note_refused(self, reason: str) -> None:
        """It takes no records again."""
        self.reason, self.is_level = reason, False


class BehindPartitions:
    """All partitions that are behind."""

    def __init__(self) -> None:
        self._each: dict[Target, Behind] = {}

    def __contains__(self, target: Target) -> bool:
        return target in self._each

    def leave_out(self, rows: Sequence[OutboxRow]) -> Sequence[OutboxRow]:
        """The rows for other partitions."""
        return [row for row in rows if row.target not in self._each] if self._each else rows

    def add(self, target: Target, done: RelayCheckpoint, reason: str) -> None:
        """From now on the partition is left out; it has what is visible in `done`."""
        about = {"topic": target[0], "partition": target[1], "error": reason, CAUSE: str(target)}
        log.warning("a partition takes no records, the others go on", extra=about)
        self._each[target] = Behind(target=target, done=done, reason=reason)

    def remove(self, behind: Behind) -> None:
        """The partition has what the others have."""
        topic, partition = behind.target
        about = {"topic": topic, "partition": partition}
        log.info("a partition takes records again", extra=about)
        del self._each[behind.target]

    def select(self, *, is_level: bool) -> Sequence[Behind]:
        return [each for each in self._each.values() if each.is_level == is_level]

    def limit(self, progress: RelayCheckpoint) -> RelayCheckpoint:
        """What all partitions have, when those that are not behind have `progress`."""
        if not self._each:
            return progress
        oldest = min((each.done for each in self._each.values()), key=get_age)
        return replace(oldest, ends=progress.ends)

    @property
    def obstacle(self) -> str | None:
        """Why partitions are behind; None when none is."""
        reasons = [f"{topic}/{n}: {each.reason}" for (topic, n), each in self._each.items()]
        return f"partitions take no records: {'; '.join(reasons)}" if reasons else None


def get_age(done: RelayCheckpoint) -> tuple[int, int, int]:
    """Sorts the checkpoints of one relay by their time. Of snapshots with one xmax the later one
    has fewer transactions in progress."""
    snapshot = done.published
    return int(snapshot.xmax), -len(snapshot.xip), -1 if done.target is None else done.floor
