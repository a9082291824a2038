"""Workers, the job and check-cells read the headers of a record in one way, whatever they hold."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from aiokafka.structs import ConsumerRecord
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from analytics_spark.job.query import select_records
from analytics_spark.job.topics import SCHEMA_VERSION, USERS
from analytics_spark.settings import JobSettings
from shared.messaging import messages
from shared.messaging.messages import ReadHeader
from shared.messaging.reading import to_record
from shared.messaging.records import Headers, to_version
from test_support.raw_records import NOON_MILLISECONDS, NOT_UTF_8
from verification.differential.check_cells import to_row

TYPE = "user-moved"

VERSIONS = (
    None,
    b"",
    b"0",
    b"1",
    b"01",
    b"0000000001",
    b"00000000001",
    b"2",
    b"2147483647",
    b"2147483648",
    b"9999999999",
    b"99999999999",
    b"9" * 30,
    b"-1",
    b"+1",
    b" 1",
    b"1 ",
    b"1\n",
    b"1\0",
    b"1.0",
    b"1e0",
    b"0x1",
    b"1_0",
    b"1L",
    b"NaN",
    "١".encode(),
    "１".encode(),
    "²".encode(),
    NOT_UTF_8,
    b"1" + NOT_UTF_8,
)

RECORD = (
    StructType()
    .add("key", BinaryType())
    .add("value", BinaryType())
    .add("partition", IntegerType())
    .add("offset", LongType())
    .add("timestamp", TimestampType())
    .add("headers", ArrayType(StructType().add("key", StringType()).add("value", BinaryType())))
)
"""As Kafka's source has it."""


def with_version(name: str, value: bytes | None) -> list[ReadHeader]:
    """The headers of a message, with this value of one of them, and a second one that is right."""
    right = {
        messages.TYPE: TYPE.encode(),
        messages.SCHEMA_VERSION: b"1",
        messages.STREAM_VERSION: b"1",
    }
    return [*(right | {name: value}).items(), (name, right[name])]


def as_worker(headers: Sequence[ReadHeader], name: str) -> int | None:
    try:
        return to_version(Headers(to_record(consumed(headers)))[name])
    except (KeyError, ValueError):
        return None


def consumed(headers: Sequence[ReadHeader]) -> ConsumerRecord[bytes, bytes]:
    return ConsumerRecord(
        USERS.name, 0, 0, NOON_MILLISECONDS, 0, b"k", b"{}", None, 1, 2, list(headers)
    )


@pytest.mark.parametrize("name", [messages.SCHEMA_VERSION, messages.STREAM_VERSION])
def test_a_version_is_the_same_for_all_readers(
    spark: SparkSession, settings: JobSettings, name: str
) -> None:
    written = [with_version(name, value) for value in VERSIONS]
    noon = datetime.fromtimestamp(NOON_MILLISECONDS / 1000, UTC)
    rows = [(b"k", b"{}", 0, offset, noon, headers) for offset, headers in enumerate(written)]
    frame = select_records(spark.createDataFrame(rows, RECORD), USERS, settings)

    by_job = [(row["type"], row["seq"]) for row in frame.orderBy("offset").collect()]

    by_check = [to_row(consumed(headers))[5:7] for headers in written]
    versions = [as_worker(headers, name) for headers in written]
    by_worker: list[tuple[str | None, int | None]] = [(TYPE, version) for version in versions]
    if name == messages.SCHEMA_VERSION:
        by_worker = [(TYPE if each == SCHEMA_VERSION else None, 1) for each in versions]
    assert by_job == by_check == by_worker
    assert len(set(by_worker)) > 1
