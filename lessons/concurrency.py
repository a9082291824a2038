"""Several runs at a time, all of which have ended before anything is reported."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


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
