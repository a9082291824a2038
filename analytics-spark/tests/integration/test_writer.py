"""One writer for the tables, and only with the checkpoint that filled them."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest.mock import Mock

import psycopg
import pytest

from analytics_spark.job import sink
from analytics_spark.job import writer as writing
from analytics_spark.job.batch import CellBatch
from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.job.writer import (
    LastingWriter,
    NotTheWriter,
    open_lasting_writer,
    open_writer,
)
from test_support.analytics.one_batch import BUCKETS, JACK, QUERY_ID, one_batch
from test_support.waits import HANGS_AFTER_SECONDS


def apply(writer: psycopg.Connection, *batches: CellBatch) -> Sequence[bool]:
    return [sink.apply(writer, each, "0" * 32) for each in batches]


@pytest.fixture
def writer(tables: str, tmp_path: Path) -> Iterator[psycopg.Connection]:
    with open_writer(tables, Checkpoint(tmp_path), BUCKETS) as connection:
        yield connection


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
    second.join(timeout=HANGS_AFTER_SECONDS)
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


WHOLE = {"offsets": 'v1\n{"conf":{}}\n-', "commits": "v1\n{}"}
"""What Spark writes for a batch."""


def write_checkpoint(folder: Path, *, done: int | None, planned: int) -> None:
    """What Spark leaves of the query when it has done and planned so many batches."""
    (folder / "metadata").write_text(json.dumps({"id": QUERY_ID}))
    for log, newest in (("commits", done), ("offsets", planned)):
        (folder / log).mkdir()
        for batch_id in range(-1 if newest is None else newest, -1, -1):
            (folder / log / str(batch_id)).write_text(WHOLE[log])
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
        pytest.raises(
            NotTheWriter, match=r"are of no batch, .* has done batch 0 .* run `make republish`"
        ),
        open_writer(tables, Checkpoint(tmp_path), BUCKETS),
    ):
        pass


def test_tables_restored_from_an_old_copy_are_refused(
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


def test_a_checkpoint_restored_from_an_old_copy_is_refused(
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


@pytest.mark.parametrize(
    ("torn", "is_taken_up"),
    [
        (["offsets/11"], True),
        (["commits/10"], True),
        (["offsets/11", "commits/10"], True),
        (["offsets/11", "offsets/10", "commits/10"], False),
    ],
    ids=str,
)
def test_files_that_a_power_cut_has_torn_are_dropped_unless_the_tables_are_ahead(
    tables: str, writer: psycopg.Connection, tmp_path: Path, torn: Sequence[str], is_taken_up: bool
) -> None:
    """Spark would plan a batch again that the tables have, and its new records would be lost."""
    apply(writer, one_batch(10, JACK))
    writer.close()
    write_checkpoint(tmp_path, done=10, planned=11)
    for each in torn:
        (tmp_path / each).write_bytes(b"")
    if "offsets/10" in torn:
        (tmp_path / "offsets/11").unlink()  # it was not on the disk at all

    with (
        nullcontext()
        if is_taken_up
        else pytest.raises(NotTheWriter, match=r"planned batch 9: after a power cut, .* republish"),
        open_writer(tables, Checkpoint(tmp_path), BUCKETS),
    ):
        pass


def test_another_number_of_buckets_is_refused(
    tables: str, writer: psycopg.Connection, tmp_path: Path
) -> None:
    """Users would go to buckets without their orders and addresses."""
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


def terminate(reader: psycopg.Connection) -> None:
    """End the writer's connection on the server."""
    ended = reader.execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE application_name = 'analytics-job' AND datname = current_database()"
    )
    assert ended.fetchall() == [(True,)]


def test_a_batch_whose_connection_is_lost_after_its_commit_counts_once(
    tables: str, reader: psycopg.Connection, tmp_path: Path
) -> None:
    write_checkpoint(tmp_path, done=None, planned=0)
    applied: list[bool] = []

    def work(connection: psycopg.Connection) -> None:
        applied.extend(apply(connection, one_batch(0, JACK)))
        if len(applied) == 1:
            terminate(reader)
            connection.execute("SELECT 1")

    with open_lasting_writer(tables, Checkpoint(tmp_path), BUCKETS) as writer:
        writer.run(work)

    assert applied == [True, False]
    assert reader.execute("SELECT purchases FROM cells").fetchall() == [(1,)]


def test_a_connection_that_is_lost_at_rest_is_noticed_and_opened_again(
    tables: str, reader: psycopg.Connection, tmp_path: Path
) -> None:
    """Also when the database cannot be reached for a while."""
    write_checkpoint(tmp_path, done=None, planned=0)
    available = [True]

    @contextmanager
    def open_if_available() -> Iterator[psycopg.Connection]:
        if not available.pop():
            raise psycopg.OperationalError("the database system is starting up")
        with open_writer(tables, Checkpoint(tmp_path), BUCKETS) as connection:
            yield connection

    writer = LastingWriter(open_if_available)
    writer.renew_if_lost()
    assert writer.is_connected
    terminate(reader)
    available += [True, False]

    writer.renew_if_lost()
    assert not writer.is_connected
    writer.renew_if_lost()
    assert writer.is_connected
    assert writer.run(lambda connection: apply(connection, one_batch(0, JACK))) == [True]
    writer.close()


def test_a_database_that_stays_unavailable_ends_the_writer(
    tables: str, reader: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "RECONNECT_SECONDS_MAX", 0)
    write_checkpoint(tmp_path, done=None, planned=0)
    with open_lasting_writer(tables, Checkpoint(tmp_path), BUCKETS) as writer:
        terminate(reader)
        unavailable = psycopg.OperationalError("the database system is starting up")
        monkeypatch.setattr(psycopg, "connect", Mock(side_effect=unavailable))
        with pytest.raises(psycopg.OperationalError, match="starting up"):
            writer.run(lambda connection: apply(connection, one_batch(0, JACK)))


def test_a_writer_that_was_replaced_while_it_was_disconnected_ends(
    tables: str, reader: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "LOCK_WAIT_SECONDS", 0)
    write_checkpoint(tmp_path, done=None, planned=0)
    with open_lasting_writer(tables, Checkpoint(tmp_path), BUCKETS) as writer:
        terminate(reader)
        with (
            open_writer(tables, Checkpoint(tmp_path), BUCKETS),
            pytest.raises(NotTheWriter, match="another job"),
        ):
            writer.run(lambda connection: apply(connection, one_batch(0, JACK)))
