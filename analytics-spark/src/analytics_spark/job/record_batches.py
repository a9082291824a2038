"""Kafka's record batches as Arrow columns, without a Python object for each record.

A fetch has batches in the bytes in which they lie in the log (record batch, version 2). Only the
lengths of the records are read one by one; all else is computed for thousands of records at once.

https://kafka.apache.org/documentation/#recordbatch
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from aiokafka import codec
from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
from aiokafka.record.control_record import ABORT_MARKER, ControlRecord
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.util import calc_crc32c
from numpy.typing import NDArray

from analytics_spark.job.versions import Integers, Mask
from shared.messaging.wire import (
    BATCH_BEGIN,
    BATCH_BYTES,
    BATCH_COVERED,
    LENGTH_BEGINS,
    VERSION,
    prefixed,
)

Bytes = NDArray[np.uint8]

CODEC, HAS_APPEND_TIME, IS_TRANSACTIONAL, IS_CONTROL = 0x07, 0x08, 0x10, 0x20
"""Bits of a batch's attributes."""

DECODERS: Mapping[int, Callable[[memoryview], bytes]] = {
    0: bytes,
    1: codec.gzip_decode,
    2: codec.snappy_decode,
    3: codec.lz4_decode,
    4: codec.zstd_decode,
}

WORD = np.dtype("<u8")

ABSENT = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The records of a batch, one after the other, not compressed.

    `next_offset` is the one after the batch. `append_time`, in milliseconds, holds for all records
    of a topic with the broker's time; otherwise the records' times count from `first_time`.
    """

    base_offset: int
    next_offset: int
    first_time: int
    append_time: int | None
    count: int
    records: bytes


def split(chunk: bytes, aborted: Sequence[tuple[int, int]]) -> Iterator[Batch]:
    """The committed batches of a fetch; one that is not there as a whole, at the end, is left out.

    `aborted` has the transactions of the fetch that were aborted: producer and first offset. A
    batch of markers, or of such a transaction, comes without records.

    Raises:
        CorruptRecordException: a batch does not match its checksum, or has another format.
        UnsupportedCodecError: a batch is compressed in an unknown way.
    """
    view, at = memoryview(chunk), 0
    waiting = sorted(aborted, key=lambda each: each[1], reverse=True)
    aborting: set[int] = set()
    while len(view) - at >= BATCH_BYTES:
        base_offset, length, _, version, checksum = BATCH_BEGIN.unpack_from(view, at)
        end = at + LENGTH_BEGINS + length
        if end > len(view):
            return
        covered = view[at + BATCH_BEGIN.size : end]
        if version != VERSION or calc_crc32c(covered) != checksum:
            raise CorruptRecordException(f"a batch at offset {base_offset} is corrupt")
        attributes, last, first_time, latest_time, producer, _, _, count = (
            BATCH_COVERED.unpack_from(covered)
        )
        while waiting and waiting[-1][1] <= base_offset:
            aborting.add(waiting.pop()[0])
        if attributes & IS_CONTROL and is_abort(view[at:end]):
            aborting.discard(producer)
        is_void = attributes & IS_CONTROL or (
            attributes & IS_TRANSACTIONAL and producer in aborting
        )
        yield Batch(
            base_offset=base_offset,
            next_offset=base_offset + last + 1,
            first_time=first_time,
            append_time=latest_time if attributes & HAS_APPEND_TIME else None,
            count=0 if is_void else count,
            records=b"" if is_void else decode(attributes & CODEC, view[at + BATCH_BYTES : end]),
        )
        at = end


def is_abort(control_batch: memoryview) -> bool:
    marker = next(iter(DefaultRecordBatch(bytes(control_batch))))
    return bool(ControlRecord.parse(marker.key) == ABORT_MARKER)


def decode(codec_number: int, records: memoryview) -> bytes:
    if codec_number not in DECODERS:
        raise UnsupportedCodecError(f"compression {codec_number} is unknown")
    return DECODERS[codec_number](records)


def to_table(
    batches: Sequence[Batch],
    headers: Sequence[str],
    is_wanted: Callable[[pa.Table], Mask] = lambda heads: np.ones(heads.num_rows, bool),
) -> pa.Table:
    """Columns offset, time (milliseconds), the value of the first header of each of these names,
    key and value; binary, and null where there is none.

    `is_wanted` chooses among the records by all columns but key and value, which are copied for
    those alone.

    Raises:
        CorruptRecordException: records do not end where their batch does.
    """
    # The words of names are read beyond the last record.
    content = b"".join((*(batch.records for batch in batches), bytes(2 * WORD.itemsize)))
    data = np.frombuffer(content, np.uint8)
    at: Integers = np.array(find_records(content, batches), np.int64) + 1  # after the attributes
    time_delta, at = read_numbers(data, at)
    offset_delta, at = read_numbers(data, at)
    key_length, key_at = read_numbers(data, at)
    value_length, value_at = read_numbers(data, key_at + np.maximum(key_length, 0))
    header_count, at = read_numbers(data, value_at + np.maximum(value_length, 0))
    counts = [batch.count for batch in batches]
    time = np.repeat([batch.first_time for batch in batches], counts) + time_delta
    appended = np.repeat([batch.append_time or -1 for batch in batches], counts)
    heads = pa.table(
        {
            "offset": np.repeat([batch.base_offset for batch in batches], counts) + offset_delta,
            "time": np.where(appended < 0, time, appended),
            **{
                name: take(content, *found)
                for name, found in find_headers(data, at, header_count, headers).items()
            },
        }
    )
    wanted = is_wanted(heads)
    if not wanted.all():
        heads = heads.filter(pa.array(wanted))
    key = take(content, key_at[wanted], key_length[wanted])
    value = take(content, value_at[wanted], value_length[wanted])
    return heads.append_column("key", key).append_column("value", value)


def find_records(content: bytes, batches: Sequence[Batch]) -> list[int]:
    """Where each record begins, after its length."""
    found: list[int] = []
    end = 0
    for batch in batches:
        at, end = end, end + len(batch.records)
        for _ in range(batch.count):
            byte = content[at]
            at += 1
            length, place = byte & 0x7F, 7
            while byte > 0x7F:
                byte = content[at]
                at += 1
                length |= (byte & 0x7F) << place
                place += 7
            found.append(at)
            at += length >> 1  # it is never negative, so this ends its zigzag form
        if at != end:
            raise CorruptRecordException(f"the records of a batch at {batch.base_offset} overlap")
    return found


def read_numbers(data: Bytes, at: Integers) -> tuple[Integers, Integers]:
    """The integers (varint, zigzag) that begin at these places, and the places after them."""
    byte = data[at]
    at = at + 1
    number = byte.astype(np.int64)
    going_on, place = np.flatnonzero(byte > 0x7F), 7
    number[going_on] &= 0x7F
    while len(going_on):
        byte = data[at[going_on]]
        number[going_on] |= (byte & 0x7F).astype(np.int64) << place
        at[going_on] += 1
        going_on, place = going_on[byte > 0x7F], place + 7
    return (number >> 1) ^ -(number & 1), at


def find_headers(
    data: Bytes, at: Integers, count: Integers, names: Sequence[str]
) -> dict[str, tuple[Integers, Integers]]:
    """Where the value of the first header of each name begins, and its length: -1 for a null value,
    ABSENT without such a header."""
    found = {name: (np.zeros(len(at), np.int64), np.full(len(at), ABSENT)) for name in names}
    # All sequences of eight bytes: a name is compared as integers, together with its length.
    words = np.ndarray(len(data) - WORD.itemsize + 1, WORD, data, strides=(1,))
    encoded = {name: b"".join(prefixed(name.encode())) for name in names}
    parts_of = {name: to_words(each) for name, each in encoded.items()}
    masks = {name: to_mask(each) for name, each in encoded.items()}
    rows = np.arange(len(at))
    for number in range(int(count.max(initial=0))):
        if not (going_on := count > number).all():
            rows, at, count = rows[going_on], at[going_on], count[going_on]
        word = words[at]
        # Most often all records have the same header here, which is not one of ours.
        is_uniform = bool((word == word[0]).all())
        length, name_at = read_numbers(data, at[:1] if is_uniform else at)
        name_at = at + (name_at[0] - at[0]) if is_uniform else name_at
        value_length, value_at = read_numbers(data, name_at + length)
        for name, parts in parts_of.items():
            mask = masks[name]
            begin_of_name = word if mask is None else word & mask
            if is_uniform and begin_of_name[0] != parts[0]:
                continue
            same = np.flatnonzero(begin_of_name == parts[0])
            for begin, part in parts.items() if mask is None else ():
                same = same[words[at[same] + begin] == part]
            begins, lengths = found[name]
            same = same[lengths[rows[same]] == ABSENT]
            begins[rows[same]], lengths[rows[same]] = value_at[same], value_length[same]
        at = value_at + np.maximum(value_length, 0)
    return found


def to_words(encoded: bytes) -> dict[int, np.uint64]:
    """The words that cover these bytes, by where they begin; they may overlap. Fewer than eight
    bytes are one word, which ends with zeros."""
    encoded = encoded.ljust(WORD.itemsize, b"\0")
    last = len(encoded) - WORD.itemsize
    return {at: np.frombuffer(encoded, WORD, 1, at)[0] for at in (*range(0, last, 8), last)}


def to_mask(encoded: bytes) -> np.uint64 | None:
    """The bits of the only word of a short name; None of a longer one."""
    bits = 8 * len(encoded)
    return np.uint64((1 << bits) - 1) if len(encoded) < WORD.itemsize else None


def take(content: bytes, begins: Integers, lengths: Integers) -> pa.Array:
    """The bytes at these places, which do not overlap and ascend; null for a negative length."""
    valid: Mask = lengths >= 0
    rows = np.flatnonzero(valid)
    # One array over all that is stored, of which every second element is taken: what lies between
    # two of ours is an element as well.
    edges = np.empty(2 * len(rows), np.int32)
    edges[::2] = begins[rows]
    edges[1::2] = begins[rows] + lengths[rows]
    buffers = [None, pa.py_buffer(edges), pa.py_buffer(content)]
    if not len(rows):
        return pa.nulls(len(valid), pa.binary())
    elements = pa.BinaryArray.from_buffers(pa.binary(), len(edges) - 1, buffers)
    position = np.zeros(len(valid), np.int64)
    position[rows] = 2 * np.arange(len(rows))
    return elements.take(pa.array(position, mask=None if valid.all() else ~valid))
