"""`export`: the cells of final hours as Parquet files, one for each hour, for other programs.

`hour=2016-11-11T00/cells.parquet` is complete or absent, and has a hash of its rows: an hour is
written again only when its rows differ, after a rebuild for example.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import psycopg
import pyarrow as pa
from pyarrow import parquet

from shared.runtime.progress import tell_in_place

CONNECT_TIMEOUT_SECONDS = 10
STATEMENT_TIMEOUT_SECONDS = 600

HOUR_FORMAT = "%Y-%m-%dT%H"
FILE = "cells.parquet"
UNFINISHED = ".part"
"""A suffix that readers of Parquet files ignore."""
ROWS_HASH = b"hometown.rows.sha256"

SCHEMA = pa.schema(
    {
        "user_id": pa.string(),
        "item_id": pa.string(),
        "item_type": pa.string(),
        "address": pa.string(),
        "gender": pa.string(),
        "purchases": pa.int64(),
        "quantity": pa.int64(),
        "amount": pa.decimal128(20, 2),
    }
)
"""The hour is the name of the folder."""

FINAL_HOURS = """
    SELECT hour, encode(sha256(string_agg(hash, ''::bytea ORDER BY hash)), 'hex') AS hash
    FROM (
        SELECT hour, sha256(convert_to(each::text, 'UTF8')) AS hash
        FROM cells AS each
        WHERE hour < date_trunc('hour', (SELECT max(watermark) FROM epochs))
    ) AS hashed
    GROUP BY hour
    ORDER BY hour
"""

ROWS = """
    SELECT user_id, item_id, item_type, address, gender, purchases, quantity, cents
    FROM cells
    WHERE hour = %s
    ORDER BY user_id, item_id, item_type, address, gender
"""


class NotExported(Exception):
    """The export stopped; the message has the reason. Existing files are complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Numbers of hours, by what the export did."""

    written: int
    unchanged: int
    removed: int


def export(dsn: str, folder: Path) -> Exported:
    """Update the folder to the current final hours.

    Raises:
        NotExported: another export is running, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock_folder(folder), snapshot(dsn) as connection:
            remove_unfinished(folder)
            return update_files(connection, folder)
    except OSError as error:
        raise NotExported(
            f"{error.filename or folder}: {error.strerror}: free some space or name another folder"
            " (--to), and repeat the command"
        ) from error


def update_files(connection: psycopg.Connection, folder: Path) -> Exported:
    final: dict[datetime, str] = dict(connection.execute(FINAL_HOURS).fetchall())
    written = 0
    for number, (hour, rows_hash) in enumerate(final.items(), start=1):
        tell_in_place(f"{number} of {len(final)} hours")
        path = get_path(folder, hour)
        if read_rows_hash(path) != rows_hash:
            write(path, read_rows(connection, hour, rows_hash))
            written += 1
    tell_in_place("")
    removed = remove_others(folder, final)
    return Exported(written=written, unchanged=len(final) - written, removed=removed)


def get_path(folder: Path, hour: datetime) -> Path:
    return folder / f"hour={hour.astimezone(UTC):{HOUR_FORMAT}}" / FILE


def read_rows_hash(path: Path) -> str | None:
    """The hash in a file; None when the file is missing, or was not written by an export."""
    try:
        metadata = parquet.read_schema(path).metadata or {}
    except (FileNotFoundError, pa.ArrowInvalid):
        return None
    value: bytes | None = metadata.get(ROWS_HASH)
    return value.decode() if value else None


def read_rows(connection: psycopg.Connection, hour: datetime, rows_hash: str) -> pa.Table:
    rows = connection.execute(ROWS, [hour]).fetchall()
    *columns, cents = zip(*rows, strict=True)
    amounts = [Decimal(each).scaleb(-2) for each in cents]
    arrays = [
        pa.array(values, field.type)
        for values, field in zip([*columns, amounts], SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA.with_metadata({ROWS_HASH: rows_hash}))


def write(path: Path, table: pa.Table) -> None:
    """Write under a temporary name first: readers see the old file or the new one, no part."""
    path.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=".", suffix=UNFINISHED, delete=False
    ) as file:
        try:
            parquet.write_table(table, file)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
    sync(path.parent)


def sync(folder: Path) -> None:
    """Sync the folder, so that the new name survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_others(folder: Path, final: Mapping[datetime, str]) -> int:
    """Remove the files of hours without cells, after a rebuild for example."""
    kept = {get_path(folder, hour) for hour in final}
    others = [path for path in folder.glob(f"hour=*/{FILE}") if path not in kept]
    for path in others:
        path.unlink()
        if not any(path.parent.iterdir()):
            path.parent.rmdir()
    return len(others)


def remove_unfinished(folder: Path) -> None:
    """Remove temporary files of an export that was killed."""
    for path in folder.glob(f"hour=*/.*{UNFINISHED}"):
        path.unlink()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock the folder. Raises NotExported when another export holds the lock."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise NotExported(f"another export writes to {folder}: wait until it ends") from error
        yield


@contextmanager
def snapshot(dsn: str) -> Iterator[psycopg.Connection]:
    """A read-only connection on which all reads see one snapshot."""
    with psycopg.connect(
        dsn,
        application_name="export",
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        options=f"-c timezone=UTC -c statement_timeout={STATEMENT_TIMEOUT_SECONDS}s",
    ) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        yield connection
