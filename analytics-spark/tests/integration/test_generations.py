"""Readers see one generation at a time, and a writer of one that is hidden ends."""

import asyncio
from pathlib import Path

import psycopg
import pytest

from analytics_spark.job import generations, sink, writer
from analytics_spark.job.generations import FIRST, Generation, OtherGeneration
from shared.runtime import postgres
from test_support.analytics.one_batch import BUCKETS, JACK, one_batch

SHOWN = "SELECT user_id, purchases FROM cells ORDER BY user_id"
VIEWS = ("cells", "sales", "epochs", "batches")
LILY = JACK | {"user_id": "Lily"}


def fill(dsn: str, folder: Path, generation: Generation, *deltas: dict[str, object]) -> None:
    with writer.open_writer(
        dsn, generation.get_checkpoint(folder), BUCKETS, generation
    ) as connection:
        assert sink.apply(connection, one_batch(0, *deltas), "0" * 32, generation)


@pytest.fixture
def second(tables: str, reader: psycopg.Connection, tmp_path: Path) -> Generation:
    """A rebuild with Lily, next to the active tables with Jack."""
    fill(tables, tmp_path, FIRST, JACK)
    generation = generations.begin(reader)
    fill(tables, tmp_path, generation, LILY)
    return generation


def test_the_rows_of_a_rebuild_are_not_shown_before_the_switch(
    reader: psycopg.Connection, second: Generation
) -> None:
    assert reader.execute(SHOWN).fetchall() == [("Jack", 1)]
    assert generations.find_candidate(reader) == second
    assert generations.get_active(reader) == FIRST

    reader.execute(
        f"INSERT INTO {second.schema}.sales VALUES ('2016-11-11T00:00Z', 'i', 't', 'BJ', 1, 1, 1)"
    )

    generations.show(reader, second)

    assert reader.execute(SHOWN).fetchall() == [("Lily", 1)]
    counts = [reader.execute(f"SELECT count(*) FROM {view}").fetchone() for view in VIEWS]
    assert counts == [(1,)] * len(VIEWS)


def test_a_switch_can_be_taken_back_and_forth(
    reader: psycopg.Connection, second: Generation
) -> None:
    generations.show(reader, second)
    for shown in ("Jack", "Lily", "Jack"):
        before = generations.find_previous(reader)
        assert before is not None
        generations.show(reader, before)
        assert reader.execute(SHOWN).fetchall() == [(shown, 1)]


def test_readers_see_all_of_one_generation_and_nothing_of_the_other(
    tables: str, reader: psycopg.Connection, second: Generation
) -> None:
    """One transaction: a reader of several tables meets the old ones or the new ones."""
    with psycopg.connect(tables) as other:
        other.execute("SELECT count(*) FROM epochs")
        generations.LOCK_TIMEOUT_SECONDS, patience = 1, generations.LOCK_TIMEOUT_SECONDS
        try:
            with pytest.raises(psycopg.errors.LockNotAvailable):
                generations.show(reader, second)
        finally:
            generations.LOCK_TIMEOUT_SECONDS = patience

        assert other.execute(SHOWN).fetchall() == [("Jack", 1)]
    assert generations.get_active(reader) == FIRST
    generations.show(reader, second)


def test_a_writer_whose_tables_are_hidden_or_shown_writes_nothing(
    tables: str, reader: psycopg.Connection, second: Generation, tmp_path: Path
) -> None:
    """Both the live job and a rebuild that goes on after its switch."""
    generations.show(reader, second)

    assert refusal(tables, FIRST) == "generation 1 is not the active one any more"
    assert refusal(tables, second) == "generation 2 is the active one now"

    for generation in (FIRST, second):
        counted = f"SELECT counted FROM {generation.schema}.epochs"
        assert reader.execute(counted).fetchall() == [(1,)]


def refusal(dsn: str, generation: Generation) -> str:
    """The error of a writer that opened the generation before it was shown or hidden."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(writer.SEARCH_PATH, [generation.schema])
        connection.execute(writer.CREATE_DELTAS)
        connection.execute(writer.CREATE_SALE_DELTAS)
        with pytest.raises(OtherGeneration) as raised:
            sink.apply(connection, one_batch(1, JACK), "0" * 32, generation)
    return str(raised.value)


def test_without_the_fence_a_job_continues_with_hidden_tables(
    tables: str,
    reader: psycopg.Connection,
    second: Generation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(generations, "require_unchanged", lambda cursor, generation: None)
    generations.show(reader, second)

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        refusal(tables, FIRST)

    assert reader.execute("SELECT counted FROM generation_1.epochs").fetchall() == [(2,)]
    assert reader.execute(SHOWN).fetchall() == [("Lily", 1)]


def test_a_generation_that_was_dropped_is_gone_and_its_number_is_not_used_again(
    tables: str, reader: psycopg.Connection, second: Generation
) -> None:
    generations.drop(reader, second)

    assert generations.find_all(reader) == [FIRST]
    assert refusal(tables, second) == "generation 2 was dropped"
    assert generations.begin(reader).schema == "generation_3"


def test_a_second_writer_of_the_same_generation_is_refused_and_one_of_another_is_not(
    tables: str, second: Generation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(tables, autocommit=True) as connection:
        writer.take_lock(connection, second)
        with psycopg.connect(tables, autocommit=True) as other:
            writer.take_lock(other, FIRST)
            # Only now: a server frees the lock of an earlier writer a moment after that has ended.
            monkeypatch.setattr(writer, "LOCK_WAIT_SECONDS", 0)
            with pytest.raises(writer.NotTheWriter, match="another job writes generation 2"):
                writer.take_lock(other, second)


def test_tables_of_before_the_generations_become_the_first_one(database: str) -> None:
    """What is counted in a database that exists stays shown, and the job goes on with it."""
    migrations = postgres.list_migrations("analytics_spark")
    older = [each for each in migrations if each.name < "analytics_spark/0003"]
    values = {name: value for name, value in JACK.items() if name != "hour"}
    with psycopg.connect(database, autocommit=True) as connection:
        for migration in older:
            connection.execute(migration.sql.encode())
        connection.execute(
            f"INSERT INTO cells (hour, {', '.join(values)})"
            f" VALUES (now(), {', '.join('%s' for _ in values)})".encode(),
            list(values.values()),
        )
        connection.execute(postgres.CREATE_MIGRATIONS)
        for migration in older:
            connection.execute(
                "INSERT INTO migrations VALUES (%s, %s)", [migration.name, migration.sha256]
            )

        asyncio.run(postgres.migrate(database, "analytics_spark"))

        assert connection.execute(SHOWN).fetchall() == [("Jack", 1)]
        assert generations.get_active(connection) == FIRST
