"""When the job rests after a batch, and how long."""

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import DataFrame

from analytics_spark.job import resting
from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.job.query import Sink
from analytics_spark.job.resting import (
    BACKLOG_SHARE,
    LIVE_RECORDS_PER_SECOND,
    Pace,
    get_rest_seconds,
    read_pace,
    rest_after,
)
from analytics_spark.settings import JobSettings

AGE_MAX = 5.0
ORDERS_MAX = 100
BATCH = 7
FRAME = cast(DataFrame, None)


def rest_at(times_live: float, batch_seconds: float, *, is_catching_up: bool = False) -> float:
    """The rest at that many times the rate up to which the job is live."""
    pace = Pace(
        records_per_second=times_live * LIVE_RECORDS_PER_SECOND,
        batch_seconds=batch_seconds,
        is_catching_up=is_catching_up,
    )
    return get_rest_seconds(pace, AGE_MAX)


@pytest.mark.parametrize("times_live", [0, 0.5, 1])
def test_with_few_records_the_job_does_not_rest(times_live: float) -> None:
    assert rest_at(times_live, 0.6) == 0


def test_with_many_records_the_rest_is_in_proportion_to_the_batch() -> None:
    assert [rest_at(2, 0.6), rest_at(2, 1.2)] == [0.6, 1.2]
    assert rest_at(4, 0.6) == pytest.approx(1.8)


@pytest.mark.parametrize("batch_seconds", [0.1, 0.6, 1.5, 2.5, 4, 60])
def test_a_record_that_just_missed_a_batch_is_counted_in_time(batch_seconds: float) -> None:
    """If there is any rest: batches alone can take longer than that."""
    rest = rest_at(1_000_000, batch_seconds)

    assert rest == max(0, AGE_MAX - 2 * batch_seconds)


def test_a_backlog_is_read_without_rests() -> None:
    assert rest_at(4, 0.6, is_catching_up=True) == 0


def test_a_job_whose_rows_must_have_no_age_never_rests() -> None:
    pace = Pace(records_per_second=1e6, batch_seconds=0.6, is_catching_up=False)
    assert get_rest_seconds(pace, row_age_seconds_max=0) == 0


def plan(folder: Path, batch_id: int, at_seconds: float, orders: int, users: int = 0) -> None:
    """Write what Spark writes when it plans a batch that ends at these offsets."""
    (folder / "offsets").mkdir(exist_ok=True)
    batch = {"batchWatermarkMs": 0, "batchTimestampMs": int(at_seconds * 1000), "conf": {}}
    sources = {"users.v1": {"0": users}}, {"orders.v1": {"0": orders, "1": 0}}
    lines = ["v1", json.dumps(batch), *(json.dumps(each) for each in sources)]
    (folder / "offsets" / str(batch_id)).write_text("\n".join(lines))


def read(folder: Path, batch_id: int = BATCH, now: float = 1010.5) -> Pace:
    return read_pace(Checkpoint(folder), batch_id, now, {"orders.v1": ORDERS_MAX})


def test_the_pace_is_what_arrived_between_two_plans_and_how_long_a_batch_took(
    tmp_path: Path,
) -> None:
    plan(tmp_path, BATCH - 1, 1008, orders=10)
    plan(tmp_path, BATCH, 1010, orders=20, users=10)

    assert read(tmp_path) == Pace(records_per_second=10, batch_seconds=0.5, is_catching_up=False)


def test_half_of_a_full_batch_is_a_backlog_but_any_number_of_users_is_none(tmp_path: Path) -> None:
    half = int(ORDERS_MAX * BACKLOG_SHARE)
    plan(tmp_path, BATCH - 1, 1008, orders=10)
    plan(tmp_path, BATCH, 1010, orders=10 + half - 1, users=10 * ORDERS_MAX)
    assert not read(tmp_path).is_catching_up

    plan(tmp_path, BATCH, 1010, orders=10 + half)
    assert read(tmp_path).is_catching_up


@pytest.mark.parametrize("before", [None, 1010, 2000])
def test_the_rate_of_a_first_batch_or_after_a_change_of_the_clock_is_unknown(
    tmp_path: Path, before: float | None
) -> None:
    if before is not None:
        plan(tmp_path, BATCH - 1, before, orders=10)
    plan(tmp_path, BATCH, 1010, orders=40)

    assert read(tmp_path).records_per_second == 0


def create_settings(folder: Path) -> JobSettings:
    return JobSettings(
        environment="development",
        database_url="postgresql://job@127.0.0.1/analytics",
        checkpoint_dir=folder,
        row_age_seconds_max=AGE_MAX,
    )


def make_resting(
    folder: Path, monkeypatch: pytest.MonkeyPatch, stop: threading.Event
) -> tuple[list[str], Sink]:
    """What happens in the order in which it happens, and a sink that wants to rest for 4 s."""
    monkeypatch.setattr(resting, "time", SimpleNamespace(time=lambda: 1010.5))
    plan(folder, BATCH - 1, 1008, orders=0)
    plan(folder, BATCH, 1010, orders=90_000)
    happened: list[str] = []

    def wait(seconds: float) -> bool:
        happened.append(f"rest {seconds:.1f}")
        return threading.Event.wait(stop, seconds)

    monkeypatch.setattr(stop, "wait", wait)

    def sink(frame: DataFrame, batch_id: int) -> None:
        happened.append(f"commit {batch_id}")

    return happened, rest_after(sink, Checkpoint(folder), create_settings(folder), stop)


def test_a_batch_is_committed_before_the_rest_and_a_stop_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = threading.Event()
    happened, write = make_resting(tmp_path, monkeypatch, stop)
    batch = threading.Thread(target=write, args=(FRAME, BATCH), daemon=True)
    batch.start()
    batch.join(0.1)
    assert batch.is_alive(), "it rests"

    stop.set()
    batch.join(AGE_MAX - 2)

    assert not batch.is_alive()
    assert happened == [f"commit {BATCH}", "rest 4.0"]


def test_a_batch_that_fails_is_not_followed_by_a_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened, _ = make_resting(tmp_path, monkeypatch, stop := threading.Event())

    def fail(frame: DataFrame, batch_id: int) -> None:
        raise RuntimeError("the batch")

    settings = create_settings(tmp_path)
    with pytest.raises(RuntimeError, match="the batch"):
        rest_after(fail, Checkpoint(tmp_path), settings, stop)(FRAME, BATCH)

    assert happened == []
