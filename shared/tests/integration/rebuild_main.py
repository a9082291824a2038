"""A rebuild as a process of its own, for a test that kills it."""

import asyncio
import sys

from counter import CODEC, publish
from counts import READ_MODELS
from shared import postgres, rebuild
from shared.doorbell import Doorbell
from shared.event_store import EventStore


async def work(dsn: str) -> None:
    async with postgres.open_pool(dsn, name="test", connections_max=2) as pool:
        store = EventStore(
            pool,
            category="counter",
            source="test",
            codec=CODEC,
            publish=publish,
            doorbell=Doorbell(None),
        )
        await rebuild.run(dsn, [store], READ_MODELS, only_check=False)


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
