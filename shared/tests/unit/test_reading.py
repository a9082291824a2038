"""What aiokafka reads is read here as well, and what it does not read, too."""

import re
from pathlib import Path

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from shared.messaging.reading import FetchedBatches, read_records
from shared.messaging.wire import RecordBatch
from test_support.raw_records import NOT_UTF_8, raw

CHECKOUT = Path(__file__).parents[3]
PLACE = ("users.v1", 0)
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}

CONTENT = st.none() | st.binary(max_size=300)
RECORDS = st.lists(
    st.tuples(
        st.integers(-(2**40), 2**42),
        CONTENT,
        CONTENT,
        st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=5), CONTENT), max_size=3),
    ),
    min_size=1,
    max_size=20,
)


@given(RECORDS, st.sampled_from(sorted(CODECS)))
def test_records_are_those_that_aiokafka_reads(
    given: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]], codec: str
) -> None:
    builder = DefaultRecordBatchBuilder(2, CODECS[codec], 0, -1, -1, -1, 1 << 30)
    for offset, (time, key, value, headers) in enumerate(given):
        assert builder.append(offset, time, key, value, headers) is not None
    content = bytes(builder.build())
    batch = MemoryRecords(content).next_batch()

    found = list(read_records(batch, memoryview(content)))

    assert [(each.timestamp, each.key, each.value, each.headers) for each in found] == given
    assert [
        (each.offset, each.timestamp, each.key, each.value, each.headers) for each in found
    ] == [(each.offset, each.timestamp, each.key, each.value, each.headers) for each in batch]


def test_a_name_that_is_not_utf_8_is_escaped_and_the_batches_around_it_are_read() -> None:
    content = b""
    for name in (b"one", NOT_UTF_8, b"three"):
        batch = RecordBatch(*PLACE, bytes_max=1 << 20)
        assert batch.append(raw(*PLACE, (name, None)))
        assert batch.append(raw(*PLACE, (b"name", b"value")))
        content += batch._build()
    batches, names = FetchedBatches(content), []

    while batches.has_next():
        fetched = batches.next_batch()
        assert fetched.validate_crc()
        names += [each.headers[0][0] for each in fetched]

    assert names == ["one", "name", "\\xff\\xfe", "name", "three", "name"]


def test_bytes_that_are_no_records_are_an_error() -> None:
    batch = RecordBatch(*PLACE, bytes_max=1 << 20)
    assert batch.append(raw(*PLACE))
    content = batch._build()
    parsed = MemoryRecords(content).next_batch()

    with pytest.raises(ValueError, match=r"no end|announced"):
        list(read_records(parsed, memoryview(content)[:-3]))


def test_every_reader_is_made_in_one_place() -> None:
    """But in `log_ends`, which reads nothing; Faust makes its own (`analytics_faust.transport`)."""
    makes = re.compile(r"\bAIOKafkaConsumer\(")

    found = {
        path.relative_to(CHECKOUT).as_posix()
        for path in CHECKOUT.glob("*/src/**/*.py")
        if makes.search(path.read_text())
    }

    assert found == {
        "shared/src/shared/messaging/log_ends.py",
        "shared/src/shared/messaging/reading.py",
    }
