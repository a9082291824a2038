"""What is read from the bytes of a log is what aiokafka reads from them, record by record."""

import struct
from collections.abc import Sequence

import pyarrow as pa
import pytest
from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from hypothesis import example, given
from hypothesis import strategies as st

from analytics_spark.job.record_batches import Batch, split, to_table
from analytics_spark.job.versions import Mask
from shared.messaging.wire import BATCH_BEGIN, BATCH_COVERED

NAMES = ("ce_type", "ce_streamversion", "ce_id")
BYTES_MAX = 1 << 20
NO_PRODUCER = -1
ABORT, COMMIT = 0, 1

Given = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Time, key, value, headers."""

headers = st.lists(
    st.tuples(
        st.sampled_from([*NAMES, "ce_time", "ce_schemaversion", "", "ce_type2", "ce_i"])
        | st.text(),
        st.none() | st.binary(max_size=200),
    ),
    max_size=5,
)
records = st.lists(
    st.tuples(
        st.integers(0, 1 << 45),
        st.none() | st.binary(max_size=100),
        st.none() | st.binary(max_size=300),
        headers,
    ),
    min_size=1,
    max_size=8,
)
codecs = st.sampled_from(range(5))


def build(
    given: Sequence[Given],
    *,
    base_offset: int = 0,
    codec: int = 0,
    producer: int = NO_PRODUCER,
    bits: int = 0,
    latest_time: int | None = None,
) -> bytes:
    """A batch as a broker stores it; `bits` are attributes besides those of the codec."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        batch_size=BYTES_MAX,
    )
    for number, (time, key, value, its_headers) in enumerate(given):
        builder.append(number, time, key, value, its_headers)
    built = bytes(builder.build())
    _, length, epoch, version, _ = BATCH_BEGIN.unpack_from(built)
    fields = list(BATCH_COVERED.unpack_from(built, BATCH_BEGIN.size))
    fields[0] |= bits
    if latest_time is not None:
        fields[3] = latest_time
    covered = BATCH_COVERED.pack(*fields) + built[BATCH_BEGIN.size + BATCH_COVERED.size :]
    begin = BATCH_BEGIN.pack(base_offset, length, epoch, version, calc_crc32c(covered))
    return begin + covered


def build_marker(base_offset: int, producer: int, kind: int) -> bytes:
    """The end of a transaction."""
    key = struct.pack(">hh", 0, kind)
    return build([(0, key, b"", [])], base_offset=base_offset, producer=producer, bits=0x10 | 0x20)


def read(chunk: bytes, aborted: Sequence[tuple[int, int]] = ()) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = to_table(list(split(chunk, aborted)), NAMES).to_pylist()
    return rows


def read_offsets(chunk: bytes, aborted: Sequence[tuple[int, int]] = ()) -> list[object]:
    return [row["offset"] for row in read(chunk, aborted)]


def simple(count: int) -> list[Given]:
    return [(0, b"key", b"value", [])] * count


@given(st.lists(st.tuples(records, codecs), min_size=1, max_size=4))
@example([([(0, b"k", b"v", [("ce_type", b"first"), ("ce_type", b"second")])], 0)])
@example([([(0, b"k", b"v", [("ce_type", None), ("ce_type", b"second")])], 0)])
@example([([(0, None, None, [("x", b"ce_type"), ("ce_type", b"")]), (0, b"", b"", [])], 4)])
def test_records_are_those_that_aiokafka_reads(given: list[tuple[list[Given], int]]) -> None:
    built, base_offset = [], 0
    for of_batch, codec in given:
        built.append(build(of_batch, base_offset=base_offset, codec=codec))
        base_offset += len(of_batch) + 3
    expected = []
    for batch in built:
        for record in DefaultRecordBatch(batch):
            values: dict[str, bytes | None] = {}
            for name, value in record.headers:
                values.setdefault(name, value)
            expected.append(
                {
                    "offset": record.offset,
                    "time": record.timestamp,
                    **{name: values.get(name) for name in NAMES},
                    "key": record.key,
                    "value": record.value,
                }
            )

    assert read(b"".join(built)) == expected


def test_only_what_is_wanted_is_copied() -> None:
    chunk = build([(time, b"%d" % time, b"value", []) for time in range(4)])

    def is_even(heads: pa.Table) -> Mask:
        even: Mask = heads["time"].to_numpy() % 2 == 0
        return even

    assert to_table(list(split(chunk, [])), NAMES, is_even)["key"].to_pylist() == [b"0", b"2"]


def test_a_topic_with_the_brokers_time_has_one_time_for_each_batch() -> None:
    chunk = build([(1, None, None, []), (2, None, None, [])], bits=0x08, latest_time=77)
    assert [row["time"] for row in read(chunk)] == [77, 77]


def test_a_batch_that_is_cut_off_is_read_later() -> None:
    chunk = build(simple(2)) + build(simple(2), base_offset=2)
    for missing in (1, 50, 80):
        assert read_offsets(chunk[:-missing]) == [0, 1]


def test_no_batch_is_no_record() -> None:
    assert read(b"") == []


def test_a_flipped_bit_is_found() -> None:
    chunk = bytearray(build(simple(2)))
    chunk[-3] ^= 1
    with pytest.raises(CorruptRecordException):
        read(bytes(chunk))


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(UnsupportedCodecError):
        read(build(simple(1), bits=5))


def test_records_that_do_not_fill_their_batch_are_refused() -> None:
    batch = next(split(build(simple(2)), []))
    short = Batch(
        base_offset=0, next_offset=2, first_time=0, append_time=None, count=1, records=batch.records
    )
    with pytest.raises(CorruptRecordException):
        to_table([short], NAMES)


TRANSACTIONS = b"".join(
    (
        build(simple(2), base_offset=0, producer=7, bits=0x10),
        build(simple(1), base_offset=2, producer=8, bits=0x10),
        build(simple(1), base_offset=3),
        build_marker(4, 7, ABORT),
        build(simple(1), base_offset=5, producer=7, bits=0x10),
        build_marker(6, 8, COMMIT),
        build_marker(7, 7, COMMIT),
    )
)


def test_an_aborted_transaction_and_markers_are_no_records() -> None:
    assert read_offsets(TRANSACTIONS, aborted=[(7, 0)]) == [2, 3, 5]
    # What the broker does not name as aborted is committed.
    assert read_offsets(TRANSACTIONS) == [0, 1, 2, 3, 5]


def test_what_has_no_records_is_passed_nevertheless() -> None:
    batches = list(split(TRANSACTIONS, [(7, 0)]))
    assert [batch.next_offset for batch in batches] == [2, 3, 4, 5, 6, 7, 8]
