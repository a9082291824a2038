"""What is counted outlives the process, its folder, and its machine."""

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
    DEADLINE_SECONDS,
    IMPATIENT,
    PATIENT,
    Kafka,
    Start,
    Worker,
    hour_at,
)
from test_support.analytics.still_histories import Totals, history

ORDERS = 600
MEANWHILE = 3000
SAMPLE = (4, 4, 12, 44_506_56)


async def test_killed_at_any_moment_it_goes_on_where_it_was(
    kafka: Kafka, start: Start, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    """With its tables, and without them: then their changelogs make them anew."""
    played = history(99, ORDERS)
    expected = [played.hour(number) for number in range(2)]

    def counted(worker: Worker) -> list[Totals]:
        return [hour_at(worker, elsewhere.time(at(hour=number))) for number in range(2)]

    chance = random.Random(7)
    worker = start(tmp_path).wait_until_ready()
    publishing = asyncio.create_task(kafka.publish(*elsewhere.events(played.events)))
    for _ in range(2):
        more = counted(worker)[0][1] + chance.randrange(1, 40)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while counted(worker)[0][1] < min(more, expected[0][1]):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        worker.kill()
        worker = await asyncio.to_thread(start(tmp_path).wait_until_ready)
    await publishing
    await kafka.settled()
    assert counted(worker) == expected

    worker.kill()
    shutil.rmtree(tmp_path)
    worker = await asyncio.to_thread(start(tmp_path).wait_until_ready)
    assert counted(worker) == expected
    await kafka.publish(*elsewhere.events(played.cancellations()))
    await kafka.settled()
    assert counted(worker) == [(0, 0, 0, 0)] * 2
    assert worker.stop() == 0


async def test_a_second_worker_stands_by_and_goes_on_with_the_same_numbers(
    kafka: Kafka, start: Start, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    hour = elsewhere.time(HOUR)
    workers = [start(tmp_path / name).wait_until_ready() for name in ("one", "two")]
    await kafka.publish(*elsewhere.events(sample()))
    await kafka.settled()
    [has_hours] = [each for each in workers if status_of(each, "/v1/hours") == 200]
    [other] = [each for each in workers if each is not has_hours]
    assert hour_at(has_hours, hour) == SAMPLE
    assert status_of(other, "/v1/hours") == 503

    has_hours.kill()
    deadline = time.monotonic() + DEADLINE_SECONDS
    while status_of(other, "/v1/hours") != 200:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)
    assert hour_at(other, hour) == SAMPLE


def status_of(worker: Worker, path: str) -> int:
    return httpx.get(worker.url + path, headers=dict(worker.headers)).status_code


@pytest.mark.parametrize(
    ("program", "expected"), [(PATIENT, 1), (IMPATIENT, 0)], ids=["patient", "impatient"]
)
async def test_after_a_rest_who_was_registered_before_their_order_is_found(
    kafka: Kafka,
    start: Start,
    elsewhere: Elsewhere,
    tmp_path: Path,
    program: Sequence[str],
    expected: int,
) -> None:
    """The user comes after many records that lead to nothing, the order is alone in its topic."""
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
    await kafka.settled()

    assert hour_at(worker, elsewhere.time(HOUR))[1] == expected
    # It counts deliveries, and the order may be delivered again: so not how many, but whether.
    lost = worker.get("/v1/status")["orders_without_user"]
    assert (lost > 0) == (expected == 0)
