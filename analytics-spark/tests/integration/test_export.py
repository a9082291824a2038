"""Final hours as Parquet files: the rows of the table, each file whole, written once."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from analytics_spark.operations import export as exporting
from analytics_spark.operations.export import Exported, NotExported, export
from test_support.analytics.histories import at, confirmed, id_of, sample
from test_support.analytics.small_job import SmallJob
from test_support.analytics.stored_cells import store

READ_CELLS = """
    SELECT to_char(hour, 'YYYY-MM-DD"T"HH24'), user_id, item_id, item_type, address, gender,
        purchases, quantity, cents / 100.00
    FROM cells
    WHERE hour < '2016-11-11T03:00:00Z'
"""


@pytest.fixture
def filled(tables: str) -> Iterator[psycopg.Connection]:
    """Cells of four hours, of which three are final; the last one begins at three."""
    job = SmallJob().read(
        *sample(),
        *(
            confirmed(f"Jack {hour}", "Jack", ("iphone", 1), ordered_at=at(7, hour=hour))
            for hour in (1, 2, 3)
        ),
    )
    with psycopg.connect(tables, autocommit=True, options="-c timezone=UTC") as connection:
        store(connection, job, at(30, hour=3))
        yield connection


def rows_in(folder: Path) -> set[tuple[Any, ...]]:
    """What a reader finds who knows nothing of us."""
    hours = dataset.partitioning(pa.schema({"hour": pa.string()}), flavor="hive")
    found = dataset.dataset(folder, format="parquet", partitioning=hours).to_table()
    names = ["hour", "user_id", "item_id", "item_type", "address", "gender"]
    names += ["purchases", "quantity", "amount"]
    return {tuple(row[name] for name in names) for row in found.to_pylist()}


def stamps(folder: Path) -> dict[str, int]:
    return {
        path.parent.name: path.stat().st_mtime_ns for path in folder.glob("hour=*/cells.parquet")
    }


def test_the_files_have_the_rows_of_final_hours_and_money_as_decimals(
    tables: str, filled: psycopg.Connection, tmp_path: Path
) -> None:
    assert export(tables, tmp_path) == Exported(written=3, unchanged=0, removed=0)

    assert rows_in(tmp_path) == set(filled.execute(READ_CELLS).fetchall())
    assert stamps(tmp_path).keys() == {f"hour=2016-11-11T0{hour}" for hour in range(3)}
    amounts = parquet.read_table(tmp_path / "hour=2016-11-11T01/cells.parquet")["amount"]
    assert amounts.to_pylist() == [Decimal("5388.88")]


def test_only_hours_that_changed_are_written_again(
    tables: str, filled: psycopg.Connection, tmp_path: Path
) -> None:
    export(tables, tmp_path)
    before = stamps(tmp_path)
    assert export(tables, tmp_path) == Exported(written=0, unchanged=3, removed=0)
    assert stamps(tmp_path) == before

    filled.execute("UPDATE cells SET cents = cents + 1 WHERE hour = %s", [at(hour=1)])
    filled.execute("DELETE FROM cells WHERE hour = %s", [at(hour=2)])

    assert export(tables, tmp_path) == Exported(written=1, unchanged=1, removed=1)
    assert rows_in(tmp_path) == set(filled.execute(READ_CELLS).fetchall())
    assert stamps(tmp_path)["hour=2016-11-11T00"] == before["hour=2016-11-11T00"]
    assert not (tmp_path / "hour=2016-11-11T02").exists()


@pytest.mark.usefixtures("filled")
def test_the_same_rows_are_the_same_bytes(tables: str, tmp_path: Path) -> None:
    export(tables, tmp_path / "one")
    export(tables, tmp_path / "other")

    one, other = (
        {
            path.parent.name: path.read_bytes()
            for path in (tmp_path / name).glob("hour=*/cells.parquet")
        }
        for name in ("one", "other")
    )
    assert one == other
    assert len(one) == 3


@pytest.mark.usefixtures("filled")
def test_a_full_disk_leaves_no_part_of_a_file(
    tables: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = parquet.write_table
    count = 0

    def fills_the_disk(table: pa.Table, file: Any) -> None:
        nonlocal count
        count += 1
        if count == 2:
            file.write(b"PAR1 and half of the rest")
            raise OSError(errno.ENOSPC, "No space left on device")
        plain(table, file)

    with monkeypatch.context() as full:
        full.setattr("pyarrow.parquet.write_table", fills_the_disk)
        with pytest.raises(NotExported, match="No space left on device: free some space"):
            export(tables, tmp_path)

    assert [path.name for path in tmp_path.glob("hour=*/*")] == ["cells.parquet"]
    assert export(tables, tmp_path) == Exported(written=2, unchanged=1, removed=0)


KILLED_HALFWAY = """
import os, signal, sys
from pathlib import Path
from analytics_spark.operations import export

def write_table(table, file):
    file.write(b"PAR1 and half of the rest")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)

export.parquet.write_table = write_table
export.export(sys.argv[1], Path(sys.argv[2]))
"""


def test_a_kill_leaves_nothing_that_a_reader_takes_and_the_next_export_clears_up(
    tables: str, filled: psycopg.Connection, tmp_path: Path
) -> None:
    export(tables, tmp_path)
    before = rows_in(tmp_path)
    filled.execute("UPDATE cells SET cents = cents + 1 WHERE hour = %s", [at(hour=1)])

    ended = subprocess.run(
        [sys.executable, "-c", KILLED_HALFWAY, tables, str(tmp_path)], check=False
    )

    assert ended.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob("hour=*/.*.part"))) == 1
    assert rows_in(tmp_path) == before
    assert export(tables, tmp_path) == Exported(written=1, unchanged=2, removed=0)
    assert list(tmp_path.glob("hour=*/.*")) == []
    assert rows_in(tmp_path) == set(filled.execute(READ_CELLS).fetchall())


@pytest.mark.usefixtures("filled")
def test_a_file_that_is_broken_or_not_ours_is_written_again(tables: str, tmp_path: Path) -> None:
    export(tables, tmp_path)
    (tmp_path / "hour=2016-11-11T00/cells.parquet").write_bytes(b"garbage")

    assert export(tables, tmp_path) == Exported(written=1, unchanged=2, removed=0)


@pytest.mark.usefixtures("filled")
def test_two_exports_at_once_are_refused(tables: str, tmp_path: Path) -> None:
    with exporting.lock_folder(tmp_path), pytest.raises(NotExported, match="another export writes"):
        export(tables, tmp_path)


def test_the_command_prints_its_counts(
    tables: str, filled: psycopg.Connection, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    ended = subprocess.run(
        [sys.executable, "-m", "analytics_spark", "export"],
        env=os.environ | {"DATABASE_URL": tables, "EXPORT_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == f"3 hours written, 0 unchanged, 0 removed: {folder}\n", ended.stderr
    assert {row[1] for row in rows_in(folder)} >= {id_of("Jack")}
