"""Whose new orders are refused: those that would wait too long, and never without knowing it."""

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orders_svc.order import admission
from orders_svc.order.admission import (
    COUNT_DECIDED,
    COUNT_WAITING,
    OBSERVE_SECONDS,
    REFUSED,
    WAITING_MIN,
    Admission,
    get_share,
)
from shared.runtime.identifiers import first_id_at
from shared.web.problems import HttpProblem
from test_support.counted import counting

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WAIT_MAX, TIMEOUT = timedelta(seconds=10), timedelta(seconds=30)
STEP_SECONDS = 0.1
HOT = UUID(int=7)


@dataclass(kw_only=True)
class Placed:
    order_id: UUID
    user_id: UUID
    at: float
    decided_at: float | None = None


class Shop:
    """Orders that are decided one after the other, those of `stuck` users never."""

    def __init__(
        self, decided_per_second: Callable[[float], float], stuck: Iterable[UUID] = ()
    ) -> None:
        self.decided_per_second = decided_per_second
        self.stuck = set(stuck)
        self.parked: set[UUID] = set()
        self.orders: list[Placed] = []
        self.refused: Counter[UUID] = Counter()
        database: Any = self
        self.database = database
        self.admission = Admission(database, wait_max=WAIT_MAX, timeout=TIMEOUT)
        self._queue: deque[Placed] = deque()
        self._can_decide = 0.0
        self.seconds = 0.0

    async def run(self, seconds: float, placed_per_second: dict[UUID, float]) -> None:
        """Place so many orders of each user, at even intervals."""
        users = len(placed_per_second)
        due = {each: number / users for number, each in enumerate(placed_per_second)}
        for number in range(1, round(seconds / STEP_SECONDS) + 1):
            self.seconds += STEP_SECONDS
            for user_id, rate in placed_per_second.items():
                due[user_id] += rate * STEP_SECONDS
                while due[user_id] >= 1:
                    due[user_id] -= 1
                    self.place(user_id)
            self._decide()
            if number % round(OBSERVE_SECONDS / STEP_SECONDS) == 0:
                await self.admission.observe(self.database, self.now)

    @property
    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)

    def place(self, user_id: UUID) -> None:
        try:
            self.admission.demand(user_id)
        except HttpProblem:
            self.refused[user_id] += 1
            return
        order = Placed(order_id=first_id_at(self.now), user_id=user_id, at=self.seconds)
        self.orders.append(order)
        if user_id not in self.stuck:
            self._queue.append(order)

    def _decide(self) -> None:
        self._can_decide += self.decided_per_second(self.seconds) * STEP_SECONDS
        while self._queue and self._can_decide >= 1:
            self._can_decide -= 1
            self._queue.popleft().decided_at = self.seconds
        self._can_decide = min(self._can_decide, 1.0)

    async def fetchrow(
        self, statement: str, before: UUID, begin: UUID, end: UUID
    ) -> dict[str, int]:
        assert statement == COUNT_DECIDED
        decided = [each.order_id for each in self.since(before) if each.decided_at is not None]
        return {"since_before": len(decided), "now": sum(begin <= each < end for each in decided)}

    async def fetch(
        self, statement: str, begin: UUID, end: UUID, consumer: str, topic: str
    ) -> list[dict[str, object]]:
        assert (statement, consumer, topic) == (COUNT_WAITING, "orders-worker", "users.v1")
        waiting = Counter(
            each.user_id
            for each in self.since(begin)
            if each.decided_at is None and each.user_id not in self.parked
        )
        return [{"user_id": user_id, "orders": count} for user_id, count in waiting.items()]

    def since(self, begin: UUID) -> Iterable[Placed]:
        return takewhile(lambda each: each.order_id >= begin, reversed(self.orders))

    @property
    def longest_wait(self) -> float:
        """Seconds, of all orders that are not stuck, until now if they still wait."""
        return max(
            (self.seconds if each.decided_at is None else each.decided_at) - each.at
            for each in self.orders
            if each.user_id not in self.stuck
        )


def some_users(count: int, per_second: float) -> dict[UUID, float]:
    """Users who place so many orders a second together."""
    return {UUID(int=100 + number): per_second / count for number in range(count)}


def at_most(rate: float) -> Callable[[float], float]:
    return lambda _: rate


def paused(rate: float, begin: float, end: float) -> Callable[[float], float]:
    return lambda seconds: 0 if begin <= seconds < end else rate


@pytest.mark.parametrize("rate", [1, 50, 200])
@pytest.mark.parametrize("seconds", [4, 8])
async def test_a_pause_that_is_shorter_than_an_order_may_wait_refuses_none(
    rate: float, seconds: float
) -> None:
    shop = Shop(paused(250, 20, 20 + seconds))

    await shop.run(50, some_users(50, rate))

    assert not shop.refused
    assert shop.longest_wait < TIMEOUT.total_seconds()


async def test_a_longer_pause_refuses_all_until_orders_are_decided_again() -> None:
    shop = Shop(paused(250, 20, 50))
    users = some_users(50, 50)

    await shop.run(29, users)
    assert not shop.refused
    await shop.run(21, users)
    accepted = [each for each in shop.orders if each.at > 20 + WAIT_MAX.total_seconds() + 1]
    assert len(accepted) <= 2 * WAITING_MIN
    await shop.run(5, users)
    refused = shop.refused.total()
    await shop.run(30, users)

    assert refused == shop.refused.total() > 800


@pytest.mark.parametrize(("placed", "decided"), [(400, 250), (1000, 250), (20, 5)], ids=str)
async def test_what_is_accepted_is_decided_in_time_however_much_is_placed(
    placed: float, decided: float
) -> None:
    shop = Shop(at_most(decided))

    await shop.run(120, some_users(500, placed))

    assert shop.longest_wait < TIMEOUT.total_seconds()
    assert shop.refused.total() > (placed - decided) * 50
    done = sum(each.decided_at is not None for each in shop.orders)
    assert done > 0.95 * decided * 120, "orders are refused although more could be decided"


async def test_what_is_accepted_is_decided_in_time_after_the_workers_become_slower() -> None:
    shop = Shop(lambda seconds: 250 if seconds < 30 else 60)

    await shop.run(120, some_users(50, 200))

    assert shop.longest_wait < TIMEOUT.total_seconds()


async def test_a_burst_is_accepted_as_long_as_it_is_decided_in_time() -> None:
    shop = Shop(at_most(250))

    for _ in range(3):
        await shop.run(10, some_users(100, 2))
        await shop.run(0.1, some_users(100, 10_000))
        await shop.run(10, some_users(100, 50))

    assert not shop.refused


@pytest.mark.parametrize("rate", [200, 1_000])
async def test_a_user_who_places_too_much_is_refused_and_no_other_one(rate: float) -> None:
    shop = Shop(at_most(200))

    await shop.run(120, some_users(50, 50) | {HOT: rate})

    assert set(shop.refused) == {HOT}
    assert shop.longest_wait < TIMEOUT.total_seconds()


@pytest.mark.parametrize("rate", [0, 1, 50, 230], ids=lambda rate: f"others place {rate}/s")
@pytest.mark.parametrize("stuck", [2, 20], ids=lambda rate: f"{rate}/s are stuck")
async def test_a_user_whose_orders_are_not_decided_lets_no_other_one_be_refused(
    rate: float, stuck: float
) -> None:
    """Their orders may be parked in another service, which this one cannot see."""
    shop = Shop(at_most(250), stuck=[HOT])

    await shop.run(60, some_users(50, rate) | {HOT: stuck})
    await shop.run(10, some_users(50, 50) | {HOT: stuck})

    assert set(shop.refused) <= {HOT}


async def test_some_orders_that_are_not_decided_refuse_none() -> None:
    """Of many users, while the others place so few that the workers' rate seems to be low."""
    stuck = {UUID(int=1_000 + number): 0.05 for number in range(WAITING_MIN - 15)}
    shop = Shop(at_most(250), stuck=stuck)

    await shop.run(120, some_users(50, 1) | stuck)

    assert not shop.refused


async def test_users_whose_messages_are_parked_here_do_not_count() -> None:
    """However many: as many that wait for their turn would be refused."""
    users = some_users(100, 100)
    parked, unknown = Shop(at_most(250), stuck=users), Shop(at_most(250), stuck=users)
    parked.parked = set(users)

    for shop in (parked, unknown):
        await shop.run(30, users)
        await shop.run(0.1, {HOT: 10})

    assert not parked.refused
    assert unknown.refused


@given(st.lists(st.integers(0, 20), max_size=20), st.integers(0, 200))
def test_shares_are_as_large_as_can_be(waiting: list[int], waiting_max: int) -> None:
    share = get_share(waiting, waiting_max)

    if share is None:
        assert sum(waiting) <= waiting_max
    else:
        assert sum(min(each, share) for each in waiting) <= waiting_max
        assert sum(min(each, share + 1) for each in waiting) > waiting_max


def test_orders_are_accepted_before_the_first_observation() -> None:
    Shop(at_most(1)).admission.demand(HOT)


async def test_a_refusal_is_a_temporary_problem() -> None:
    shop = Shop(at_most(0))
    await shop.run(20, {HOT: 10})

    with counting(REFUSED) as counted, pytest.raises(HttpProblem) as refused:
        shop.admission.demand(HOT)

    assert counted == {(): 1}
    assert (refused.value.status, refused.value.code) == (503, "overloaded")


async def test_none_is_refused_if_orders_may_wait_until_the_order_timeout() -> None:
    shop = Shop(at_most(0))
    shop.admission = Admission(shop.database, wait_max=TIMEOUT, timeout=TIMEOUT)

    await shop.run(60, {HOT: 10})

    assert not shop.refused


@pytest.mark.parametrize("error", [OSError(), asyncpg.UndefinedTableError("no such table")])
async def test_orders_are_accepted_while_it_is_unknown(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(at_most(0))
    await shop.run(20, {HOT: 10})
    assert shop.admission.share is not None

    async def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(shop, "fetch", fail)
    with pytest.raises(type(error)):
        await shop.admission.observe(shop.database, shop.now)

    shop.admission.demand(HOT)


async def test_each_begin_and_end_is_one_log_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    shop = Shop(paused(250, 0, 30))

    await shop.run(60, {HOT: 10})

    assert [line.name for line in caplog.records] == [admission.__name__] * 2
