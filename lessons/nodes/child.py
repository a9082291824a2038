"""A worker of the pipeline; the words are SERVERS PREFIX FOLDER STANDBYS [early].

It prints a line of JSON each time its state changes, and ends at SIGTERM.
"""

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from lessons.nodes.pipeline import Pipeline

POLL_SECONDS = 0.05


async def work(words: Sequence[str]) -> None:
    servers, prefix, folder, standbys, *early = words
    pipeline = Pipeline(servers, prefix, folder, int(standbys), is_early=bool(early))
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    pipeline.app.finalize()
    await pipeline.app.start()
    printed = ""
    while not ended.is_set():
        line = json.dumps(describe(pipeline))
        if line != printed:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            printed = line
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), POLL_SECONDS)
    await pipeline.app.stop()


def describe(pipeline: Pipeline) -> Mapping[str, object]:
    return {
        "owned": pipeline.owned,
        "again": pipeline.read["again"],
        "copied": pipeline.read["copied"],
        "counted": pipeline.counted,
        "committed_early": pipeline.committed_early,
    }


if __name__ == "__main__":
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    asyncio.run(work(sys.argv[1:]))
