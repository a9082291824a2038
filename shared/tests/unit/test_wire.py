"""What is built here is what aiokafka builds and reads, byte for byte."""

from collections.abc import Sequence

import pytest
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.default_records import DefaultRecord, DefaultRecordBatch
from hypothesis import example, given
from hypothesis import strategies as st

from shared.messaging import wire
from shared.messaging.messages import Header
from shared.messaging.wire import OutgoingRecord, RecordBatch

BYTES_MAX = 2_000
PRODUCER = (7, 3, 41)

headers = st.lists(st.tuples(st.text(max_size=80), st.binary(max_size=200)), max_size=70)
records = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=100),
        st.none() | st.binary(max_size=300),
        headers,
        st.integers(0, 1 << 45),
    ),
    min_size=1,
    max_size=20,
)

Given = Sequence[tuple[bytes | None, bytes | None, Sequence[Header], int]]


def outgoing(record: tuple[bytes | None, bytes | None, Sequence[Header], int]) -> OutgoingRecord:
    key, value, headers, milliseconds = record
    return OutgoingRecord("topic", 0, key, value, wire.pack(headers), milliseconds)


@given(records)
@example([(None, b"x" * 1_537, [], 0), (None, b"y" * 384, [], 0)])  # BYTES_MAX would be reached
def test_a_batch_has_the_bytes_that_aiokafka_gives_it(given: Given) -> None:
    ours, theirs = RecordBatch("topic", 0, BYTES_MAX), BatchBuilder(BYTES_MAX, 0)
    for record in given:
        key, value, headers, milliseconds = record
        taken = theirs.append(timestamp=milliseconds, key=key, value=value, headers=headers)
        assert ours.append(outgoing(record)) == (taken is not None)
        if taken is None:
            break
    assert ours.size() == theirs.size()
    assert ours.record_count() == theirs.record_count()

    ours._set_producer_state(*PRODUCER)
    theirs._set_producer_state(*PRODUCER)

    assert ours._build() == theirs._build()
    assert ours._build() is ours._build()


def test_a_reader_finds_the_records_and_a_good_checksum() -> None:
    batch = RecordBatch("topic", 0, BYTES_MAX)
    sent = [(b"key", b"value", [("name", b"text")], 1_000), (None, None, [], 999)]
    for record in sent:
        assert batch.append(outgoing(record))

    read = DefaultRecordBatch(bytearray(batch._build()))

    assert read.validate_crc()
    assert [fields(record) for record in read] == sent


def fields(record: DefaultRecord) -> tuple[object, ...]:
    return (record.key, record.value, list(record.headers), record.timestamp)


def test_one_record_fits_however_large_it_is_and_then_no_other() -> None:
    batch = RecordBatch("topic", 0, BYTES_MAX)
    assert batch.append(outgoing((b"key", b"x" * 3 * BYTES_MAX, [], 0)))
    assert not batch.append(outgoing((b"key", b"x", [], 0)))
    assert batch.count == 1


@given(headers)
def test_headers_are_unpacked_as_they_were_packed(headers: Sequence[Header]) -> None:
    assert wire.unpack(wire.pack(headers)) == headers


@pytest.mark.parametrize(
    "broken", [b"", b"\x02", b"\x02\x02", b"\x02\x02a\x08no", b"\x02\x01", b"\x00\x00", b"\xff"]
)
def test_what_is_not_packed_headers_is_refused(broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"bytes|end"):
        wire.unpack(broken)
