"""One life of a reader, in a process of its own. It is read from the standard input."""

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from pathlib import Path

import asyncpg

from lessons.committing.reader import Life, Reader
from lessons.programs import execute, surviving

UNWRITTEN = 3
"""Exit status of a way that is still to write."""
CREATE_TABLE = "CREATE TABLE paces (way text, numbers_per_second bigint);"
NOTE_PACE = "INSERT INTO paces VALUES ($1, $2)"

Way = Callable[[Reader], Awaitable[None]]


async def live(life: Life) -> None:
    """Read until the end of the topic, or until the reader is killed."""
    way = find_way(life.program, life.way)
    connection = await asyncpg.connect(life.dsn)
    try:
        reader = Reader(life, connection)
        began_at = time.monotonic()
        with surviving():
            await way(reader)
        if reader.read:
            pace = round(reader.read / (time.monotonic() - began_at))
            await connection.execute(NOTE_PACE, life.name, pace)
    finally:
        await connection.close()


def find_way(program: Path, function: str) -> Way:
    """Find a function of a program. Raises TypeError if it cannot be waited for."""
    found: Way = execute(program)[function]
    if not iscoroutinefunction(found):
        raise TypeError(f"{function} is not defined with async def")
    return found


def main() -> None:
    life = Life.model_validate_json(sys.stdin.read())
    # The signal ends a loop of a learner as well, and a process whose parent was killed.
    signal.alarm(life.seconds_max)
    # A new broker has no coordinator of groups at first.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        asyncio.run(live(life))
    except NotImplementedError:
        sys.exit(UNWRITTEN)


if __name__ == "__main__":
    main()
