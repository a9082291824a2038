"""Kafka's records as checked Arrow tables; records that break their contract are separated."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from analytics_spark.job.blobs import column
from analytics_spark.job.topics import (
    AMOUNT,
    CANCELLED,
    DELETED,
    INSTANT,
    ITEM_ATTRIBUTES,
    ITEMS,
    USER_ATTRIBUTES,
    USERS,
    Kind,
    Topic,
)
from analytics_spark.job.versions import Integers, Mask
from shared.messaging.bounds import INSTANT_FORM, MONEY_FORM, QUANTITY_MAX, VERSION_MAX

MISSING = -1
"""In place of a number."""
FUTURE_MAX_MILLISECONDS = 10 * 60 * 1000
"""The services refuse times more than 5 minutes ahead. An order from the far future would move the
watermark there, and every order after it would be late."""

BLOCK_BYTES_MIN = 1 << 20

FORMS = {INSTANT: rf"^{INSTANT_FORM}\z", AMOUNT: rf"^{MONEY_FORM}\z"}
"""The texts of a type in the contracts."""


BAD = pa.schema(
    {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "reason": pa.string()}
)
"""Positions of bad records, and what is wrong with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The rows of good records, each with the `bucket` of its record, and the BAD records."""

    rows: pa.Table
    bad: pa.Table


class Verdicts:
    """Which records are good, and the first requirement that a bad one does not meet."""

    def __init__(self, count: int) -> None:
        self._reasons = [""]
        self._broken = np.zeros(count, np.int8)

    def require(self, met: Mask, reason: str) -> None:
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

    `records` has bucket, key, value, type, seq (of users and items alone), partition, offset, time
    (milliseconds) and traceparent.
    """
    documents = parse(column(records, "value"), pa.struct(dict(topic.schema)))
    verdicts = Verdicts(records.num_rows)
    known = pc.is_in(records["type"], pa.array(topic.types))
    verdicts.require(to_mask(known), "unknown event type or version")
    verdicts.require(to_mask(pc.is_valid(documents)), "the value does not match the schema")
    verdicts.require(~holds_nul(documents), "a text holds U+0000, which PostgreSQL cannot store")
    # The key chose the bucket: a user's events in another one would never be found.
    same_key = pc.equal(pc.struct_field(documents, topic.key).cast(pa.binary()), records["key"])
    verdicts.require(to_mask(same_key), f"the key is not the {topic.key}")
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


def parse(values: pa.Array, schema: pa.DataType) -> pa.Array:
    """One struct for each JSON document, null for a value that does not match the schema.

    The reader fails for all documents when one is bad, so the bad ones are found by halving.
    """
    try:
        return parse_all(values, schema)
    except pa.ArrowInvalid:
        if len(values) == 1:
            return pa.nulls(1, schema)
        middle = len(values) // 2
        return pa.concat_arrays([parse(values[:middle], schema), parse(values[middle:], schema)])


def parse_all(values: pa.Array, schema: pa.DataType) -> pa.Array:
    """Raises pa.ArrowInvalid when a single document is bad."""
    values.cast(pa.string())  # the reader accepts what is not UTF-8
    # Line breaks are only white space in JSON.
    lines = pc.replace_substring(pc.replace_substring(values, "\n", " "), "\r", " ")
    lines = lines.fill_null(b"null")
    # Wrapped in an object, no document can end the line's object or begin another one without
    # being noticed: the rows stay aligned with their records.
    wrapped = pc.binary_join_element_wise(b'{"document":', lines, b"}\n", b"")
    text = pc.binary_join(pa.ListArray.from_arrays([0, len(wrapped)], wrapped), b"")[0].as_buffer()
    table = pj.read_json(
        pa.BufferReader(text),
        pj.ReadOptions(use_threads=False, block_size=max(text.size, BLOCK_BYTES_MIN)),
        pj.ParseOptions(
            explicit_schema=pa.schema({"document": as_written(schema)}),
            unexpected_field_behavior="ignore",
        ),
    )
    if table.num_rows != len(values):
        raise pa.ArrowInvalid("a value holds more than one document")
    return read_texts(column(table, "document"), schema)


def as_written(type_: pa.DataType) -> pa.DataType:
    """The type with texts in place of times and amounts: the reader of Arrow takes more forms."""
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, as_written(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(as_written(type_.value_type))
    return pa.string() if type_ in FORMS else type_


def read_texts(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """What was read `as_written`, as it is meant. Raises pa.ArrowInvalid: a text is of no form."""
    if pa.types.is_struct(type_):
        fields = [read_texts(pc.struct_field(values, field.name), field.type) for field in type_]
        return pa.StructArray.from_arrays(fields, fields=[*type_], mask=pc.is_null(values))
    if pa.types.is_list(type_):
        elements = read_texts(values.values, type_.value_type)
        return pa.ListArray.from_arrays(values.offsets, elements, mask=pc.is_null(values))
    if type_ not in FORMS:
        return values
    if not pc.all(pc.match_substring_regex(values, FORMS[type_])).as_py():
        raise pa.ArrowInvalid(f"a text is not {FORMS[type_]}")
    return values.cast(type_)


def holds_nul(values: pa.Array) -> Mask:
    """In which values a text has the character U+0000, at any depth."""
    if pa.types.is_string(values.type):
        return to_mask(pc.match_substring(values, "\0"))
    found = np.zeros(len(values), bool)
    if pa.types.is_struct(values.type):
        for field in values.type:
            found |= holds_nul(pc.struct_field(values, field.name))
    elif pa.types.is_list(values.type):
        owner = pc.list_parent_indices(values).to_numpy()
        found[owner[holds_nul(pc.list_flatten(values))]] = True
    return found


def versions(
    topic: Topic,
    attributes: dict[str, pa.DataType],
    records: pa.Table,
    documents: pa.Array,
    verdicts: Verdicts,
) -> pa.Table:
    """Rows (bucket, key, valid_from, seq, attributes); a deletion has no attributes."""
    valid_from = to_milliseconds(documents, "effective_at")
    deleted = pc.equal(records["type"], DELETED)
    seq = pc.fill_null(records["seq"], 0).to_numpy()
    verdicts.require(valid_from != MISSING, "effective_at is missing")
    verdicts.require((seq > 0) & (seq <= VERSION_MAX), "the stream version is none")
    values = {}
    for name in attributes:
        value = pc.struct_field(documents, name)
        verdicts.require(to_mask(pc.or_(deleted, pc.is_valid(value))), f"{name} is missing")
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
    time = to_milliseconds(documents, "ordered_at")
    cancelled = to_mask(pc.equal(records["type"], CANCELLED))
    was_confirmed = pc.struct_field(documents, "was_confirmed")
    lines = pc.struct_field(documents, "lines")
    verdicts.require(time != MISSING, "ordered_at is missing")
    latest = records["time"].to_numpy() + FUTURE_MAX_MILLISECONDS
    verdicts.require(time <= latest, "ordered_at is in the future")
    verdicts.require(
        to_mask(pc.is_valid(pc.struct_field(documents, "order_id"))), "order_id is missing"
    )
    verdicts.require(~cancelled | to_mask(pc.is_valid(was_confirmed)), "was_confirmed is missing")
    verdicts.require(to_mask(pc.greater(pc.list_value_length(lines), 0)), "the order has no lines")

    owner = pc.list_parent_indices(lines).to_numpy()
    line, line_is_good = check_lines(pc.list_flatten(lines))
    has_good_lines = np.ones(records.num_rows, bool)
    has_good_lines[owner[~line_is_good]] = False
    verdicts.require(has_good_lines, "a line is incomplete, or its numbers are out of range")
    # An order that was cancelled before it was confirmed never counted.
    counts = (verdicts.good & (~cancelled | to_mask(was_confirmed)))[owner]

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
    return rows.filter(pa.array(counts))


def check_lines(lines: pa.Array) -> tuple[dict[str, pa.Array], Mask]:
    """Columns item_id, quantity and unit_cents, and which lines are good."""
    item = pc.struct_field(lines, "item_id")
    quantity = pc.fill_null(pc.struct_field(lines, "quantity"), 0)
    price = pc.struct_field(lines, "unit_price")
    cents = pc.fill_null(pc.cast(pc.multiply(price, 100), pa.int64()), MISSING)
    good = to_mask(pc.is_valid(item))
    good &= to_mask(pc.and_(pc.greater(quantity, 0), pc.less_equal(quantity, QUANTITY_MAX)))
    good &= to_mask(pc.not_equal(cents, MISSING))
    return {"item_id": item, "quantity": quantity, "unit_cents": cents}, good


def to_milliseconds(documents: pa.Array, field: str) -> Integers:
    """The field's time in milliseconds since 1970, rounded down; MISSING without one."""
    microseconds = pc.struct_field(documents, field).cast(pa.int64())
    result: Integers = pc.fill_null(microseconds, MISSING).to_numpy() // 1000
    return result


def to_mask(values: Any) -> Mask:
    """An Arrow boolean array as a numpy one; null is false."""
    result: Mask = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return result
