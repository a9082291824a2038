"""One life of a reader of a way; the words are WAY NAME SERVERS TOPIC OUT EVERY [DIES_AFTER]."""

import asyncio
import logging
import sys
from collections.abc import Sequence

import asyncpg
from aiokafka import TopicPartition

from lessons.committing.ways import WAYS, Reader, reader_dsn


async def live(words: Sequence[str]) -> None:
    way, name, servers, topic, out, every, *dies_after = words
    connection = await asyncpg.connect(reader_dsn())
    try:
        await WAYS[way](
            Reader(
                name=name,
                servers=servers,
                connection=connection,
                place=TopicPartition(topic, 0),
                out=out,
                every=int(every),
                dies_after=int(dies_after[0]) if dies_after else None,
            )
        )
    finally:
        await connection.close()


if __name__ == "__main__":
    # A new broker has no coordinator of groups at first.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    asyncio.run(live(sys.argv[1:]))
