"""Records of Kafka as checked Arrow tables; a record that breaks its contract is told apart."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from analytics_spark.job.blobs import column
from analytics_spark.job.topics import (
    CANCELLED,
    DELETED,
    ITEM_ATTRIBUTES,
    ITEMS,
    USER_ATTRIBUTES,
    USERS,
    Kind,
    Topic,
)
from analytics_spark.job.versions import TIME_BITS, Integers, Mask

QUANTITY_MAX = 1_000_000
CENTS_MAX = 10**12
"""With these bounds the amount of a line fits into 64 bits, and so does the sum of millions."""

FUTURE_MAX_MILLISECONDS = 10 * 60 * 1000
"""The services refuse times more than 5 minutes ahead. An order from the far future would move the
watermark there, and every order after it would be late."""

BLOCK_BYTES_MIN = 1 << 20


BAD = pa.schema(
    {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "reason": pa.string()}
)
"""Where bad records are, and what is wrong with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The good records' rows, each with the `bucket` of its record; and the BAD ones."""

    rows: pa.Table
    bad: pa.Table


class Verdicts:
    """Which records are good; of a bad one, the first demand that it does not meet."""

    def __init__(self, count: int) -> None:
        self._reasons = [""]
        self._broken = np.zeros(count, np.int8)

    def demand(self, met: Mask, reason: str) -> None:
        self._broken[(self._broken == 0) & ~met] = len(self._reasons)
        self._reasons.append(reason)

    @property
    def good(self) -> Mask:
        result: Mask = self._broken == 0
        return result

    def bad(self, topic: Topic, records: pa.Table) -> pa.Table:
        """The records that are not good."""
        rows = records.filter(pa.array(~self.good))
        reasons = pa.array(self._reasons).take(pa.array(self._broken[~self.good]))
        topics = pa.array([topic.name] * rows.num_rows, pa.string())
        columns = [topics, column(rows, "partition"), column(rows, "offset"), reasons]
        return pa.table(columns, schema=BAD)


def check(topic: Topic, records: pa.Table) -> Checked:
    """Read a batch of records of one topic.

    `records` has bucket, key, value, type, seq, partition, offset, time (milliseconds) and
    traceparent.
    """
    documents = parse(column(records, "value"), pa.struct(dict(topic.form)))
    verdicts = Verdicts(records.num_rows)
    known = pc.is_in(records["type"], pa.array(topic.types))
    verdicts.demand(mask(known), "its type or version is not understood")
    verdicts.demand(mask(pc.is_valid(documents)), "the value is no document of its form")
    # The key has decided on the bucket: a user's facts in another one would never be found.
    same_key = pc.equal(pc.struct_field(documents, topic.key).cast(pa.binary()), records["key"])
    verdicts.demand(mask(same_key), f"the key is not the {topic.key}")
    match topic.kind:
        case Kind.ORDERS:
            rows = orders(records, documents, verdicts)
        case Kind.USERS:
            rows = versions(USERS, USER_ATTRIBUTES, records, documents, verdicts)
        case Kind.ITEMS:
            rows = versions(ITEMS, ITEM_ATTRIBUTES, records, documents, verdicts)
        case _:
            raise ValueError(topic.kind)
    return Checked(rows=rows, bad=verdicts.bad(topic, records))


def parse(values: pa.Array, form: pa.DataType) -> pa.Array:
    """One struct for each JSON document, null for what is not such a document.

    The reader gives up on all documents when one is bad, so the bad ones are found by halving.
    """
    try:
        return parse_all(values, form)
    except pa.ArrowInvalid:
        if len(values) == 1:
            return pa.nulls(1, form)
        middle = len(values) // 2
        return pa.concat_arrays([parse(values[:middle], form), parse(values[middle:], form)])


def parse_all(values: pa.Array, form: pa.DataType) -> pa.Array:
    """Raises pa.ArrowInvalid when a single document is bad."""
    # Line breaks are only white space in JSON. PostgreSQL cannot store a NUL character.
    lines = pc.replace_substring(pc.replace_substring(values, "\n", " "), "\r", " ")
    lines = pc.if_else(pc.match_substring(lines, "\\u0000"), None, lines).fill_null(b"null")
    # Inside an object of ours, no document can end the line's object or begin another one without
    # being noticed: the rows stay aligned with their records.
    wrapped = pc.binary_join_element_wise(b'{"document":', lines, b"}\n", b"")
    text = pc.binary_join(pa.ListArray.from_arrays([0, len(wrapped)], wrapped), b"")[0].as_buffer()
    table = pj.read_json(
        pa.BufferReader(text),
        pj.ReadOptions(use_threads=False, block_size=max(text.size, BLOCK_BYTES_MIN)),
        pj.ParseOptions(
            explicit_schema=pa.schema({"document": form}), unexpected_field_behavior="ignore"
        ),
    )
    if table.num_rows != len(values):
        raise pa.ArrowInvalid("a value holds more than one document")
    table.validate(full=True)  # the reader lets broken UTF-8 pass
    return column(table, "document")


def versions(
    topic: Topic,
    attributes: dict[str, pa.DataType],
    records: pa.Table,
    documents: pa.Array,
    verdicts: Verdicts,
) -> pa.Table:
    """Rows (bucket, key, valid_from, seq, attributes); a deletion has no attributes."""
    valid_from = milliseconds(documents, "effective_at")
    deleted = pc.equal(records["type"], DELETED)
    seq = pc.fill_null(records["seq"], 0).to_numpy()
    verdicts.demand(in_range(valid_from), "it has no effective_at, or one that nobody can mean")
    verdicts.demand(seq > 0, "it has no version of its stream")
    values = {}
    for name in attributes:
        value = pc.struct_field(documents, name)
        verdicts.demand(mask(pc.or_(deleted, pc.is_valid(value))), f"it has no {name}")
        values[name] = pc.if_else(deleted, None, value)
    rows = pa.table(
        {
            "bucket": records["bucket"],
            "key": pc.struct_field(documents, topic.key),
            "valid_from": valid_from,
            "seq": seq,
        }
        | values
    )
    return rows.filter(pa.array(verdicts.good))


def orders(records: pa.Table, documents: pa.Array, verdicts: Verdicts) -> pa.Table:
    """One row for each line of a confirmed order, and of one cancelled after its confirmation."""
    time = milliseconds(documents, "ordered_at")
    cancelled = mask(pc.equal(records["type"], CANCELLED))
    was_confirmed = pc.struct_field(documents, "was_confirmed")
    lines = pc.struct_field(documents, "lines")
    verdicts.demand(in_range(time), "it has no ordered_at, or one that nobody can mean")
    latest = records["time"].to_numpy() + FUTURE_MAX_MILLISECONDS
    verdicts.demand(time <= latest, "it was ordered in the future")
    verdicts.demand(mask(pc.is_valid(pc.struct_field(documents, "order_id"))), "it has no order_id")
    verdicts.demand(~cancelled | mask(pc.is_valid(was_confirmed)), "it has no was_confirmed")
    verdicts.demand(mask(pc.greater(pc.list_value_length(lines), 0)), "it has no lines")

    owner = pc.list_parent_indices(lines).to_numpy()
    line, line_is_good = check_lines(pc.list_flatten(lines))
    has_good_lines = np.ones(records.num_rows, bool)
    has_good_lines[owner[~line_is_good]] = False
    verdicts.demand(has_good_lines, "a line lacks something, or nobody can mean its numbers")
    # An order that was cancelled before it was confirmed never counted.
    wanted = (verdicts.good & (~cancelled | mask(was_confirmed)))[owner]

    record = pa.array(owner)
    rows = pa.table(
        {
            "bucket": records["bucket"].take(record),
            "order_id": pc.struct_field(documents, "order_id").take(record),
            "line": np.arange(len(owner)) - np.searchsorted(owner, owner),
            "user_id": pc.struct_field(documents, "user_id").take(record),
            **line,
            "ordered_at": time[owner],
            "cancelled": cancelled[owner],
            "offset": records["offset"].take(record),
            "traceparent": records["traceparent"].take(record),
        }
    )
    return rows.filter(pa.array(wanted))


def check_lines(lines: pa.Array) -> tuple[dict[str, pa.Array], Mask]:
    """Columns item_id, quantity and unit_cents, and which lines are good."""
    item = pc.struct_field(lines, "item_id")
    quantity = pc.fill_null(pc.struct_field(lines, "quantity"), 0)
    price = pc.struct_field(lines, "unit_price")
    cents = pc.fill_null(pc.cast(pc.multiply(price, 100), pa.int64()), -1)
    good = mask(pc.is_valid(item))
    good &= mask(pc.and_(pc.greater(quantity, 0), pc.less_equal(quantity, QUANTITY_MAX)))
    good &= mask(pc.and_(pc.greater_equal(cents, 0), pc.less(cents, CENTS_MAX)))
    return {"item_id": item, "quantity": quantity, "unit_cents": cents}, good


def milliseconds(documents: pa.Array, field: str) -> Integers:
    """The field's time in milliseconds since 1970, rounded down; -1 when it has none."""
    microseconds = pc.struct_field(documents, field).cast(pa.int64())
    result: Integers = pc.fill_null(microseconds, -1).to_numpy() // 1000
    return result


def in_range(time: Integers) -> Mask:
    return (time >= 0) & (time < 1 << TIME_BITS)


def mask(values: Any) -> Mask:
    """An Arrow truth value as numpy's; null is false."""
    result: Mask = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return result
