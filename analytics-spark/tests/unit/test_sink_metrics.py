"""A row that comes late is counted against the objective, by the order and not by the batch."""

import time
from dataclasses import replace

import pyarrow as pa
import pytest

from analytics_spark.job import sink
from analytics_spark.job.batch import RECORDED
from test_support.analytics.one_batch import one_batch
from test_support.metric_registry import Recorder


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    for name in ("SLOW", "ROW_AGE", "ORDERS"):
        monkeypatch.setattr(sink, name, recorder.of(name))
    return recorder


def record(*ages_seconds: float) -> None:
    """Record a batch whose orders were confirmed so long ago."""
    now = time.time()
    recorded = pa.table(
        {"recorded_at": [int((now - age) * 1000) for age in ages_seconds]}, RECORDED
    )
    sink.record_metrics(replace(one_batch(1), recorded=recorded), time.time_ns())


def test_orders_that_waited_longer_than_the_objective_are_slow(recorder: Recorder) -> None:
    record(0.5, sink.SLOW_SECONDS - 1, sink.SLOW_SECONDS + 1, 3600)

    assert recorder.values["SLOW", ()] == 2
    assert recorder.values["ROW_AGE", ()] == pytest.approx(3600, abs=1)
    assert recorder.values["ORDERS", (("outcome", "counted"),)] == 1


def test_a_clock_that_is_behind_makes_no_negative_age(recorder: Recorder) -> None:
    record(-60)

    assert recorder.values["ROW_AGE", ()] == 0
    assert recorder.values["SLOW", ()] == 0


def test_a_batch_without_orders_has_no_age(recorder: Recorder) -> None:
    record()

    assert ("ROW_AGE", ()) not in recorder.values


def test_a_job_begins_with_zeros(recorder: Recorder) -> None:
    sink.begin_metrics()

    outcomes = ("counted", "late", "duplicates", "cancellations", "ignored", "bad")
    zeros = {("ORDERS", (("outcome", each),)) for each in outcomes} | {("SLOW", ())}
    assert recorder.values.keys() == zeros
    assert set(recorder.values.values()) == {0}
