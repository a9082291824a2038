"""When new orders are refused: by how many earlier ones wait, and never without knowing it."""

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from orders_svc.order import admission
from orders_svc.order.admission import STREAMS_MAX, WAITING_MIN, Admission
from shared.runtime.identifiers import first_id_at
from shared.web.problems import HttpProblem

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WAIT_MAX, TIMEOUT = timedelta(seconds=3), timedelta(seconds=30)


class Pool:
    """Answers that so many orders wait, or fails."""

    def __init__(self, *answers: int | Exception) -> None:
        self.answers = list(answers)
        self.arguments: list[tuple[object, ...]] = []

    async def fetchval(self, statement: str, *arguments: object) -> int:
        self.arguments.append(arguments)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def create(*answers: int | Exception) -> tuple[Admission, Any]:
    pool: Any = Pool(*answers)
    return Admission(pool, wait_max=WAIT_MAX, timeout=TIMEOUT), pool


def test_orders_are_accepted_before_the_first_query() -> None:
    made, _ = create()

    made.demand()
    assert not made.is_refusing


async def test_orders_are_refused_while_as_many_wait() -> None:
    made, pool = create(WAITING_MIN - 1, WAITING_MIN, WAITING_MIN - 1)
    refusing = []
    for _ in range(3):
        await made.observe(pool, NOW)
        refusing.append(made.is_refusing)

    assert refusing == [False, True, False]


async def test_a_refusal_is_a_problem_with_retry_after() -> None:
    made, pool = create(WAITING_MIN)
    await made.observe(pool, NOW)

    with pytest.raises(HttpProblem) as refused:
        made.demand()

    assert (refused.value.status, refused.value.code) == (503, "overloaded")
    assert int(refused.value.headers["Retry-After"]) > 0


async def test_only_orders_between_the_bound_and_the_time_out_are_read() -> None:
    made, pool = create(0)
    await made.observe(pool, NOW)

    [(begin, end, limit)] = pool.arguments
    assert (begin, end) == (first_id_at(NOW - TIMEOUT), first_id_at(NOW - WAIT_MAX))
    assert limit == STREAMS_MAX


@pytest.mark.parametrize("error", [OSError(), asyncpg.UndefinedTableError("no such table")])
async def test_orders_are_accepted_while_it_is_unknown(error: Exception) -> None:
    made, pool = create(WAITING_MIN, error)
    await made.observe(pool, NOW)

    with pytest.raises(type(error)):
        await made.observe(pool, NOW)

    assert not made.is_refusing


async def test_each_begin_and_end_is_one_log_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    made, pool = create(0, WAITING_MIN, WAITING_MIN + 1, 0, 0)
    for _ in range(5):
        await made.observe(pool, NOW)

    assert [line.name for line in caplog.records] == [admission.__name__] * 2
