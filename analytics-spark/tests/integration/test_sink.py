"""A batch counts once, whatever is run again; the table is a function of the deltas alone."""

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from analytics_spark.job import sink
from analytics_spark.job import writer as writing
from analytics_spark.job.batch import CellBatch, Tally, to_instant
from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.job.writer import NotTheWriter, open_writer
from test_support.analytics.histories import HOUR
from test_support.analytics.one_batch import BUCKETS, JACK, QUERY_ID, one_batch
from test_support.analytics.small_job import milliseconds

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


def test_a_second_writer_is_refused(
    writer: psycopg.Connection, tables: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "LOCK_WAIT_SECONDS", 0)
    with (
        pytest.raises(NotTheWriter, match="another job"),
        open_writer(tables, Checkpoint(tmp_path), BUCKETS),
    ):
        pass


def test_a_second_writer_takes_over_when_the_first_ends(tables: str, tmp_path: Path) -> None:
    taken = threading.Event()

    def wait_and_take() -> None:
        with open_writer(tables, Checkpoint(tmp_path), BUCKETS):
            taken.set()

    with open_writer(tables, Checkpoint(tmp_path), BUCKETS):
        second = threading.Thread(target=wait_and_take)
        second.start()
        assert not taken.is_set()
    second.join(timeout=10)
    assert taken.is_set()


def test_a_lost_checkpoint_is_refused(
    tables: str, writer: psycopg.Connection, tmp_path: Path
) -> None:
    """It would read the topics from their beginning, and count every order again."""
    apply(writer, one_batch(0, JACK))
    writer.close()

    with (
        pytest.raises(NotTheWriter, match="has none"),
        open_writer(tables, Checkpoint(tmp_path), BUCKETS),
    ):
        pass


def write_checkpoint(folder: Path, *, done: int | None, planned: int) -> None:
    """What Spark leaves of the query when it has done and planned so many batches."""
    (folder / "metadata").write_text(json.dumps({"id": QUERY_ID}))
    for log, newest in (("commits", done), ("offsets", planned)):
        (folder / log).mkdir()
        for batch_id in range(-1 if newest is None else newest, -1, -1):
            (folder / log / str(batch_id)).touch()
            (folder / log / f".{batch_id}.crc").touch()


@pytest.mark.parametrize(
    ("stored", "done", "planned"),
    [
        pytest.param(None, None, 0, id="before the first batch"),
        pytest.param(0, None, 0, id="died between the two commits of the first batch"),
        pytest.param(11, 11, 11, id="stopped between two batches"),
        pytest.param(11, 11, 12, id="died in a batch"),
        pytest.param(12, 11, 12, id="died between the two commits of a batch"),
    ],
)
def test_tables_that_fit_their_checkpoint_are_taken_up(
    tables: str,
    writer: psycopg.Connection,
    tmp_path: Path,
    stored: int | None,
    done: int | None,
    planned: int,
) -> None:
    if stored is not None:
        apply(writer, one_batch(stored, JACK))
    writer.close()
    write_checkpoint(tmp_path, done=done, planned=planned)

    with open_writer(tables, Checkpoint(tmp_path), BUCKETS) as connection:
        assert apply(connection, one_batch(planned, JACK)) == [planned != stored]


def test_lost_tables_are_refused(tables: str, tmp_path: Path) -> None:
    """Spark would go on behind the last batch it has done, and the orders before would be lost."""
    write_checkpoint(tmp_path, done=0, planned=1)

    with (
        pytest.raises(NotTheWriter, match=r"are of no batch, .* has done batch 0 .* empty both"),
        open_writer(tables, Checkpoint(tmp_path), BUCKETS),
    ):
        pass


def test_tables_put_back_from_an_old_copy_are_refused(
    tables: str, writer: psycopg.Connection, tmp_path: Path
) -> None:
    apply(writer, one_batch(9, JACK))
    writer.close()
    write_checkpoint(tmp_path, done=10, planned=10)

    with (
        pytest.raises(NotTheWriter, match=r"are of batch 9, .* has done batch 10 "),
        open_writer(tables, Checkpoint(tmp_path), BUCKETS),
    ):
        pass


def test_a_checkpoint_put_back_from_an_old_copy_is_refused(
    tables: str, writer: psycopg.Connection, tmp_path: Path
) -> None:
    """The epoch would take its next batches for repeated ones, and their orders would be lost."""
    apply(writer, one_batch(12, JACK))
    writer.close()
    write_checkpoint(tmp_path, done=10, planned=11)

    with (
        pytest.raises(NotTheWriter, match=r"are of batch 12, .* planned batch 11:"),
        open_writer(tables, Checkpoint(tmp_path), BUCKETS),
    ):
        pass


def test_another_number_of_buckets_is_refused(
    tables: str, writer: psycopg.Connection, tmp_path: Path
) -> None:
    """Users would go to buckets that do not know their orders and addresses."""
    apply(writer, one_batch(0, JACK))
    writer.close()
    write_checkpoint(tmp_path, done=0, planned=0)

    with (
        pytest.raises(
            NotTheWriter, match="permanently has 8 buckets, but BUCKETS is 4: set it to 8"
        ),
        open_writer(tables, Checkpoint(tmp_path), 4),
    ):
        pass


def test_the_watermark_of_the_first_batch_is_none() -> None:
    assert to_instant(0) is None
    assert to_instant(None) is None
    assert to_instant(1_500) == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
