"""Pending orders are measured again and again; without a database, nothing old is exposed."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest

from orders_svc.order import pending_orders, summaries
from orders_svc.order.summaries import PendingOrders
from shared.runtime.metrics import Read

HANGS: Any = None
"""In place of an answer."""
POOL: Any = None
"""Not used: the database is replaced."""


class Exposed:
    """In place of a gauge."""

    read: Read

    @contextmanager
    def read_by(self, read: Read) -> Iterator[None]:
        self.read = read
        yield


async def measure(
    monkeypatch: pytest.MonkeyPatch, *answers: Any
) -> list[list[Mapping[Any, float]]]:
    """Let the database answer; returns what was exposed before each answer, and at the end."""
    orders, age = Exposed(), Exposed()
    left, seen = [*answers, asyncio.CancelledError()], []

    async def count(pool: Any, *, now: datetime, orders_max: int) -> PendingOrders:
        seen.append([orders.read(), age.read()])
        answer: PendingOrders | BaseException | None = left.pop(0)
        if isinstance(answer, PendingOrders):
            return answer
        if isinstance(answer, BaseException):
            raise answer
        return await asyncio.Future()

    monkeypatch.setattr(pending_orders, "ORDERS", orders)
    monkeypatch.setattr(pending_orders, "AGE", age)
    monkeypatch.setattr(pending_orders, "PERIOD_SECONDS", 0.001)
    monkeypatch.setattr(summaries, "count_pending", count)
    with pytest.raises(asyncio.CancelledError):
        await pending_orders.measure_periodically(POOL)
    return seen


async def test_the_last_numbers_are_exposed_and_none_while_there_are_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = PendingOrders(orders=2, age=timedelta(seconds=9))
    many = PendingOrders(orders=3, age=timedelta(seconds=1))

    seen = await measure(monkeypatch, few, OSError("down"), many, HANGS)

    nothing: list[Mapping[Any, float]] = [{}, {}]
    assert seen == [nothing, [{(): 2}, {(): 9.0}], nothing, [{(): 3}, {(): 1.0}], nothing]


async def test_a_mistake_ends_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be the same the next time."""
    with pytest.raises(ValueError, match="wrong"):
        await measure(monkeypatch, ValueError("wrong"))
