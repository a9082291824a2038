"""A rebuild as a process of its own, for a test that kills it."""

import asyncio
import sys

from shared.projections import rebuild
from shared.runtime import postgres
from test_support.counter.counter import store_of
from test_support.counter.counts import READ_MODELS


async def work(dsn: str) -> None:
    async with postgres.open_pool(dsn, name="test", connections_max=2) as pool:
        store = store_of(pool)
        await rebuild.run(dsn, [store], READ_MODELS, only_check=False)


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
