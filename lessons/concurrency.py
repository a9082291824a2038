"""Several runs at a time, all of which have ended before anything is reported."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeVar

from lessons.broker import PREFIX, Topics, open_topics

T = TypeVar("T")


async def run_with_topics(
    servers: str, name: str, runs_max: int, runs: Iterable[Callable[[Topics, str], Awaitable[T]]]
) -> list[T]:
    """Run functions as `run_at_a_time` does, each with a prefix of its own for topics to create.

    The prefixes begin with `lesson.` and a name; their topics are removed when all have ended.
    """
    async with (
        open_topics(servers) as topics,
        topics.remove_around(f"{PREFIX}{name}.") as prefix,
    ):
        numbered = (partial(run, topics, f"{prefix}{number}.") for number, run in enumerate(runs))
        return await run_at_a_time(runs_max, numbered)


async def run_at_a_time(runs_max: int, runs: Iterable[Callable[[], Awaitable[T]]]) -> list[T]:
    """Run functions, at most so many at a time, and return what they return, in their order.

    Raises the first error, when all have ended.
    """
    free = asyncio.Semaphore(runs_max)

    async def run_one(run: Callable[[], Awaitable[T]]) -> T:
        async with free:
            return await run()

    # With `return_exceptions`, an interrupt is over when all have stopped; without, when the first
    # one has.
    ended = await asyncio.gather(*map(run_one, runs), return_exceptions=True)
    return [get_result(each) for each in ended]


def get_result(result: T | BaseException) -> T:
    """Raises the error that prevented it."""
    if isinstance(result, BaseException):
        raise result
    return result
