"""Do the cells equal the answer of definition.sql over all records of the topics?

make check-cells

Reads the topics from their beginning up to the last committed batch, into memory.
"""

import argparse
import asyncio
import sys
from collections.abc import Mapping

import psycopg
import pyarrow as pa
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from aiokafka.structs import ConsumerRecord

from local_stack.postgres import dsn
from local_stack.progress import tell
from local_stack.settings import Settings
from local_stack.status import as_found
from shared.messaging import messages, reading
from shared.messaging.records import Headers, to_version
from shared.runtime.brokers import Brokers
from shared.runtime.progress import tell_in_place
from verification.differential import oracle
from verification.differential.history_trial import READ_BATCHES, READ_CELLS, table
from verification.differential.oracle import BATCHES, CELLS, NEVER_MILLISECONDS, RECORDS

FETCH_MILLISECONDS_MAX = 5_000
SCHEMA_VERSION = 1
WRONG_SHOWN_MAX = 20

Ends = Mapping[TopicPartition, int]


class Forgotten(Exception):
    """The first batches were deleted, so it is unknown which orders were late."""


def read_tables(database: str) -> tuple[pa.Table, pa.Table]:
    """The cells and the batches (rows of CELLS and BATCHES) in one snapshot."""
    with psycopg.connect(database) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        cells = table(connection.execute(READ_CELLS).fetchall(), CELLS)
        batches = table(connection.execute(READ_BATCHES, [NEVER_MILLISECONDS]).fetchall(), BATCHES)
    return cells, batches


async def read_topics(bootstrap_servers: str, ends: Ends) -> pa.Table:
    """All records (RECORDS) before these ends. Raises KafkaError, TimeoutError."""
    rows: list[tuple[object, ...]] = []
    async with reading.create_client(
        Brokers(bootstrap_servers), auto_offset_reset="earliest"
    ) as consumer:
        for partition, end in ends.items():
            consumer.assign([partition])
            while await consumer.position(partition) < end:
                found = await consumer.getmany(partition, timeout_ms=FETCH_MILLISECONDS_MAX)
                # What is behind the last record is of a transaction: read without a result.
                if not found and await consumer.position(partition) < end:
                    raise TimeoutError(f"no records from {partition}")
                rows += [
                    to_row(record) for record in found.get(partition, ()) if record.offset < end
                ]
                tell_in_place(f"{len(rows)} records read")
    return table(rows, RECORDS)


def to_row(record: ConsumerRecord) -> tuple[object, ...]:
    """A row of RECORDS, whatever bytes the record has."""
    headers = Headers(reading.to_record(record))
    is_known_version = find_version(headers, messages.SCHEMA_VERSION) == SCHEMA_VERSION
    return (
        record.topic,
        record.partition,
        record.offset,
        record.key,
        record.value,
        headers.find(messages.TYPE, errors="replace") if is_known_version else None,
        find_version(headers, messages.STREAM_VERSION),
        record.timestamp,
    )


def find_version(headers: Headers, name: str) -> int | None:
    """None without a header of that name, or if it has another form."""
    try:
        return to_version(headers[name])
    except (KeyError, ValueError):
        return None


def get_ends(batches: pa.Table) -> Ends:
    """The end offset of the last batch in each partition. Raises Forgotten."""
    grouped = batches.group_by(["topic", "partition"]).aggregate([("first", "min"), ("end", "max")])
    if any(row["first_min"] for row in grouped.to_pylist()):
        raise Forgotten
    return {
        TopicPartition(row["topic"], row["partition"]): row["end_max"]
        for row in grouped.to_pylist()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    context = as_found(Settings())
    try:
        cells, batches = read_tables(dsn(context, "analytics"))
        records = asyncio.run(read_topics(context.address("kafka"), get_ends(batches)))
    except (OSError, KeyError, KafkaError, psycopg.Error) as error:
        sys.exit(f"hometown: the tables or topics cannot be read: {error} (start them: make up)")
    except Forgotten:
        sys.exit("hometown: the first batches were deleted: which orders were late is unknown")
    right = oracle.answer(records, batches)
    wrong = oracle.differences(right.cells, cells)
    for line in wrong[:WRONG_SHOWN_MAX]:
        tell(line)
    tell(
        f"{records.num_rows} records, {right.counted} orders counted and {right.late} late,"
        f" {cells.num_rows} cells: {f'{len(wrong)} are wrong' if wrong else 'all are right'}"
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
