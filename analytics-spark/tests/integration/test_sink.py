"""A batch counts once, whatever is run again; the table is a function of the deltas alone."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import psycopg
import pyarrow as pa
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from analytics_spark.job import sink
from analytics_spark.job.batch import CellBatch, Tally
from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.job.generations import FIRST
from analytics_spark.job.orders import SAMPLES
from analytics_spark.job.records import BAD
from analytics_spark.job.writer import open_writer
from test_support.analytics.histories import HOUR
from test_support.analytics.one_batch import BUCKETS, JACK, one_batch
from test_support.analytics.small_job import milliseconds
from test_support.counted import counting
from test_support.written_log import written_log

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TAKEN_OUT = JACK | {"purchases": -1, "quantity": -3, "cents": -16_166_64}

READ_CELLS = "SELECT user_id, purchases, quantity, cents FROM cells ORDER BY user_id"


def apply(writer: psycopg.Connection, *batches: CellBatch) -> Sequence[bool]:
    return [sink.apply(writer, each, "0" * 32) for each in batches]


@pytest.fixture
def writer(tables: str, tmp_path: Path) -> Iterator[psycopg.Connection]:
    with open_writer(tables, Checkpoint(tmp_path), BUCKETS) as connection:
        yield connection


def cells(connection: psycopg.Connection) -> list[tuple[object, ...]]:
    return connection.execute(READ_CELLS).fetchall()


def test_the_same_batch_twice_counts_once(writer: psycopg.Connection) -> None:
    applied = apply(writer, one_batch(0, JACK), one_batch(0, JACK))

    assert applied == [True, False]
    assert cells(writer) == [("Jack", 1, 3, 16_166_64)]
    assert writer.execute("SELECT counted FROM epochs").fetchall() == [(1,)]
    assert writer.execute("SELECT count(*) FROM batches").fetchall() == [(1,)]


def test_trap_t7_two_batches_are_both_there_and_a_replayed_one_changes_nothing(
    writer: psycopg.Connection,
) -> None:
    lily = JACK | {"user_id": "Lily"}

    applied = apply(
        writer, one_batch(0, JACK), one_batch(1, lily), one_batch(1, lily), one_batch(0, JACK)
    )

    assert applied == [True, True, False, False]
    assert cells(writer) == [("Jack", 1, 3, 16_166_64), ("Lily", 1, 3, 16_166_64)]


def test_the_orders_of_a_batch_count_and_are_logged_when_it_is_committed_and_not_again(
    writer: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds: list[float] = []
    monkeypatch.setattr(sink.BATCH_DURATION, "record", seconds.append)
    lasting: Any = SimpleNamespace(run=lambda write: write(writer))
    batch = replace(one_batch(0, JACK), tally=Tally(counted=2, late=1))

    with counting(sink.ORDERS) as counted, written_log() as written:
        for _ in range(2):
            sink.merge(lasting, batch, time.time_ns() - 7_000_000_000, FIRST)

    assert seconds == [pytest.approx(7, abs=2)]
    assert counted == {("counted",): 2, ("late",): 1}
    [line] = written.find("counted")
    assert (line["batch_id"], line["offsets"], line["counted"], line["late"]) == (
        0,
        batch.offsets,
        2,
        1,
    )
    assert line["seconds"] == seconds[0]


def test_a_batch_that_was_applied_before_gives_its_orders_their_spans_again(
    writer: psycopg.Connection, spans: InMemorySpanExporter
) -> None:
    """The first ones can be lost in the crash after which it runs again."""
    lasting: Any = SimpleNamespace(run=lambda write: write(writer))
    samples = [{"traceparent": TRACEPARENT, "order_id": "an order", "ordered_at": 0}]
    batch = replace(one_batch(0, JACK), samples=pa.Table.from_pylist(samples, SAMPLES))

    for _ in range(2):
        sink.merge(lasting, batch, time.time_ns(), FIRST)

    ids = [each.context.span_id for each in spans.get_finished_spans() if each.name == "merge cell"]
    assert len(ids) == 2
    assert len({*ids}) == 1


@pytest.mark.parametrize("is_repeated", [False, True])
def test_what_is_counted_again_elsewhere_leaves_letters_and_traces_to_the_job(
    writer: psycopg.Connection,
    spans: InMemorySpanExporter,
    monkeypatch: pytest.MonkeyPatch,
    is_repeated: bool,
) -> None:
    samples = [{"traceparent": TRACEPARENT, "order_id": "an order", "ordered_at": 0}]
    bad = [dict.fromkeys(BAD.names)]
    batch = replace(
        one_batch(0, JACK),
        samples=pa.Table.from_pylist(samples, SAMPLES),
        bad_records=pa.Table.from_pylist(bad, BAD),
    )
    monkeypatch.setattr(sink, "to_batch", lambda *_: batch)
    lasting: Any = SimpleNamespace(run=lambda write: write(writer))
    checkpoint, frame, letters = cast("Any", None), Mock(), Mock()

    sink.make_sink(lasting, checkpoint, BUCKETS, letters, FIRST, is_repeated=is_repeated)(frame, 0)

    traced = [each for each in spans.get_finished_spans() if each.name == "merge cell"]
    assert (letters.call_count, len(traced)) == ((0, 0) if is_repeated else (1, 1))
    assert cells(writer) == [("Jack", 1, 3, 16_166_64)]


def test_without_the_epoch_the_same_batch_twice_counts_twice(
    writer: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence = "WHERE epoch.batch_id < excluded.batch_id"
    assert fence in sink.ADVANCE_EPOCH
    monkeypatch.setattr(sink, "ADVANCE_EPOCH", sink.ADVANCE_EPOCH.replace(fence, ""))
    monkeypatch.setattr(sink, "INSERT_BATCH", f"{sink.INSERT_BATCH} ON CONFLICT DO NOTHING")

    apply(writer, one_batch(0, JACK), one_batch(0, JACK))

    assert cells(writer) == [("Jack", 2, 6, 2 * 16_166_64)]


def test_an_older_batch_changes_nothing(writer: psycopg.Connection) -> None:
    assert apply(writer, one_batch(7, JACK), one_batch(6, JACK)) == [True, False]
    assert cells(writer) == [("Jack", 1, 3, 16_166_64)]


def test_a_batch_that_fails_leaves_nothing(writer: psycopg.Connection) -> None:
    broken = replace(one_batch(0, JACK, JACK | {"gender": None}))

    with pytest.raises(psycopg.errors.NotNullViolation):
        apply(writer, broken)

    assert cells(writer) == []
    assert writer.execute("SELECT count(*) FROM epochs").fetchall() == [(0,)]
    assert apply(writer, one_batch(0, JACK)) == [True]


def test_deltas_add_up_and_an_empty_cell_goes(writer: psycopg.Connection) -> None:
    lily = JACK | {"user_id": "Lily"}
    apply(writer, one_batch(0, JACK, lily), one_batch(1, TAKEN_OUT, lily))

    assert cells(writer) == [("Lily", 2, 6, 2 * 16_166_64)]


def test_a_batch_notes_which_hours_it_changed_and_how_long_it_took(
    writer: psycopg.Connection,
) -> None:
    later = JACK | {"hour": milliseconds(HOUR + timedelta(hours=2))}
    lily = JACK | {"user_id": "Lily"}
    apply(writer, one_batch(0, JACK, later, lily), one_batch(1))
    sink.apply(writer, one_batch(2), "0" * 32, began_at=0)

    noted = writer.execute(
        "SELECT hours, milliseconds > 0 FROM batches ORDER BY batch_id"
    ).fetchall()
    assert noted == [([HOUR, HOUR + timedelta(hours=2)], None), ([], None), ([], True)]


def test_text_that_looks_like_syntax_stays_text(writer: psycopg.Connection) -> None:
    apply(writer, one_batch(0, JACK | {"user_id": 'a"b,\\.\n;', "address": ""}))

    assert cells(writer)[0][0] == 'a"b,\\.\n;'


def test_totals_and_the_watermark_only_grow(writer: psycopg.Connection) -> None:
    quiet = replace(one_batch(1), watermark=None, latest_order_at=None, tally=Tally(late=2))
    apply(writer, one_batch(0, JACK), quiet)

    row = writer.execute("SELECT batch_id, watermark, counted, late FROM epochs").fetchone()
    assert row == (1, HOUR, 1, 2)


def test_history_of_batches_is_bounded(
    writer: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "BATCHES_KEPT_MAX", 2)
    apply(writer, *(one_batch(number) for number in range(5)))

    kept = writer.execute("SELECT batch_id FROM batches ORDER BY batch_id").fetchall()
    assert kept == [(3,), (4,)]
