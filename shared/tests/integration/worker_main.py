"""A worker as a process of its own: its one reaction takes long while there is a file `hold`."""

import asyncio
import sys
from pathlib import Path

from shared import processes
from shared.consumer import Consumer
from shared.kafka import OutgoingRecord
from shared.messages import Message
from shared.settings import Settings
from shared.worker import run_worker

LONG_SECONDS = 600


async def set_aside(letter: OutgoingRecord) -> None:
    """The broker holds what other tests have left, some of it malformed."""


async def work(folder: Path) -> None:
    async def react(message: Message) -> None:
        if (folder / "hold").exists():
            (folder / "held").touch()
            await asyncio.sleep(LONG_SECONDS)
        with (folder / "effects").open("a") as effects:
            effects.write(f"{message.key}\n")

    consumer = Consumer("users-worker", {"users.v1": {"counted": [react]}}, set_aside)
    await run_worker(consumer, processes.read_settings(Settings))


if __name__ == "__main__":
    processes.run(work(Path(sys.argv[1])))
