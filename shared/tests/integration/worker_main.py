"""A worker as a process of its own. Files in its folder name the faults that it meets:

`hold`: each reaction takes long. `away`: each reaction meets a transient error. `no-letters`: dead
letters cannot be written. `bug`: `take` itself raises. `die-at`: the name of a fault point. `hang`:
a task does not end when it is cancelled. `unwatched`: committed offsets are compared with nothing.
`unbounded`: the stop may take as long as it likes.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

from shared.inbox.consumer import Consumer, Delivery
from shared.inbox.worker import run_worker
from shared.messaging import kafka
from shared.messaging.records import IncomingRecord
from shared.messaging.wire import OutgoingRecord
from shared.runtime import failpoints, postgres, processes
from shared.runtime.failpoints import Failpoint
from shared.runtime.postgres import Connection
from shared.runtime.relay_notifier import RelayNotifier
from shared.runtime.settings import Settings
from test_support.counter.counted_records import apply_effect

NAME = "users-worker"
LONG_SECONDS = 600
HANGING_STOP_SECONDS_MAX = 2.0
"""Of a worker that hangs: a test need not wait as long as a supervisor."""
LOOK_SECONDS = 0.02


class Fallible(Consumer):
    """With a bug of its own, where there is a file `bug`."""

    folder: Path

    async def take(self, records: Sequence[IncomingRecord]) -> None:
        if (self.folder / "bug").exists():
            raise RuntimeError("a bug")
        await super().take(records)


async def watch_nothing(*_: object) -> None:
    await asyncio.sleep(LONG_SECONDS)


@contextlib.contextmanager
def unbounded_stop(_seconds_max: float) -> Iterator[Callable[[], None]]:
    yield lambda: None


async def arm(folder: Path) -> None:
    """Arm the fault point that `die-at` names; `armed` is written when it is."""
    while not (folder / "die-at").exists():
        await asyncio.sleep(LOOK_SECONDS)
    failpoints.arm(Failpoint((folder / "die-at").read_text()))
    (folder / "armed").touch()


async def hang(folder: Path) -> None:
    """Endless, also when it is cancelled, where there is a file `hang`."""
    try:
        await asyncio.Event().wait()
    finally:
        while (folder / "hang").exists():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(LOOK_SECONDS)


async def work(folder: Path) -> None:
    settings = processes.read_settings(Settings)
    write = kafka.create_writer(settings.brokers, NAME)

    async def react(connection: Connection, deliveries: Sequence[Delivery]) -> None:
        for each in deliveries:
            await apply_effect(connection, each.message)
        if (folder / "away").exists():
            raise ConnectionError("unavailable")
        if (folder / "hold").exists():
            (folder / "held").touch()
            await asyncio.sleep(LONG_SECONDS)

    async def write_dead_letters(letters: Sequence[OutgoingRecord]) -> None:
        if (folder / "no-letters").exists():
            raise ConnectionError("unavailable")
        await write(letters)

    async with postgres.open_pool(settings.database_dsn, name=NAME, connections_max=4) as pool:
        reactions = {"users.v1": {"counted": [react]}}
        consumer = Fallible(NAME, pool, reactions, write_dead_letters, RelayNotifier(None))
        consumer.folder = folder
        if (folder / "unwatched").exists():
            patch("shared.inbox.worker.watch_committed", watch_nothing).start()
        if (folder / "hang").exists():
            patch("shared.inbox.worker.STOP_SECONDS_MAX", HANGING_STOP_SECONDS_MAX).start()
        if (folder / "unbounded").exists():
            patch("shared.inbox.worker.bounded_stop", unbounded_stop).start()
        await run_worker(consumer, settings, arm(folder), hang(folder))


if __name__ == "__main__":
    processes.run(work(Path(sys.argv[1])))
