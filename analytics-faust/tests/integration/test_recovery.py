"""The counts survive the loss of the process, of its folder, and of its machine."""

import asyncio
import random
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from test_support.analytics.histories import HOUR, at, confirmed, listed, registered, sample
from test_support.analytics.published import Elsewhere
from test_support.analytics.running_worker import (
    WITH_BARRIER,
    WITHOUT_BARRIER,
    Kafka,
    Start,
    Worker,
    hour_at,
)
from test_support.analytics.still_histories import Totals, history
from test_support.waits import HANGS_AFTER_SECONDS

ORDERS = 600
MEANWHILE = 3000
SAMPLE = (4, 4, 12, 44_506_56)


@pytest.mark.verify(part="faust")
async def test_a_worker_killed_at_any_moment_resumes_where_it_was(
    kafka: Kafka, start: Start, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    """With its tables, and without them: then they are rebuilt from their changelogs."""
    played = history(99, ORDERS)
    expected = [played.hour(number) for number in range(2)]

    def get_counts(worker: Worker) -> list[Totals]:
        return [hour_at(worker, elsewhere.time(at(hour=number))) for number in range(2)]

    chance = random.Random(7)
    worker = start(tmp_path).wait_until_ready()
    publishing = asyncio.create_task(kafka.publish(*elsewhere.events(played.events)))
    for _ in range(2):
        more = get_counts(worker)[0][1] + chance.randrange(1, 40)
        deadline = time.monotonic() + HANGS_AFTER_SECONDS
        while get_counts(worker)[0][1] < min(more, expected[0][1]):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        worker.kill()
        worker = await asyncio.to_thread(start(tmp_path).wait_until_ready)
    await publishing
    await kafka.wait_until_settled()
    assert get_counts(worker) == expected

    worker.kill()
    shutil.rmtree(tmp_path)
    worker = await asyncio.to_thread(start(tmp_path).wait_until_ready)
    assert get_counts(worker) == expected
    await kafka.publish(*elsewhere.events(played.cancellations()))
    await kafka.wait_until_settled()
    assert get_counts(worker) == [(0, 0, 0, 0)] * 2
    assert worker.stop() == 0


async def test_a_standby_worker_takes_over_with_the_same_numbers(
    kafka: Kafka, start: Start, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    hour = elsewhere.time(HOUR)
    workers = [start(tmp_path / name).wait_until_ready() for name in ("one", "two")]
    await kafka.publish(*elsewhere.events(sample()))
    await kafka.wait_until_settled()
    [has_hours] = [each for each in workers if get_status(each, "/v1/hours") == 200]
    [other] = [each for each in workers if each is not has_hours]
    assert hour_at(has_hours, hour) == SAMPLE
    assert get_status(other, "/v1/hours") == 503

    has_hours.kill()
    deadline = time.monotonic() + HANGS_AFTER_SECONDS
    while get_status(other, "/v1/hours") != 200:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)
    assert hour_at(other, hour) == SAMPLE


def get_status(worker: Worker, path: str) -> int:
    return httpx.get(worker.url + path, headers=dict(worker.headers)).status_code


@pytest.mark.verify(part="faust")
@pytest.mark.parametrize(
    ("program", "expected"),
    [(WITH_BARRIER, 1), (WITHOUT_BARRIER, 0)],
    ids=["with the barrier", "without"],
)
async def test_after_a_pause_a_user_who_registered_before_their_order_is_found(
    kafka: Kafka,
    start: Start,
    elsewhere: Elsewhere,
    tmp_path: Path,
    program: Sequence[str],
    expected: int,
) -> None:
    """The user comes after many records of no interest, the order is alone in its topic."""
    [jack, iphone, order] = elsewhere.events(
        [
            registered("Jack", "BJ"),
            listed("iphone"),
            confirmed("order", "Jack", ("iphone", 1), ordered_at=at(1)),
        ]
    )
    await kafka.publish(*[replace(jack, type="credit-reserved")] * MEANWHILE, jack, iphone)
    await kafka.publish(order)
    worker = start(tmp_path, program).wait_until_ready()
    await kafka.wait_until_settled()

    assert hour_at(worker, elsewhere.time(HOUR))[1] == expected
    # It counts deliveries, and the order may be delivered again: so not how many, but whether.
    lost = worker.get("/v1/status")["orders_without_user"]
    assert (lost > 0) == (expected == 0)
