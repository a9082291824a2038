"""How a batch of order events changes the stored orders: pure functions over Arrow tables."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics_spark.job.blobs import column
from analytics_spark.job.versions import Integers, Mask, find_codes

EVENTS = {
    "order_id": pa.string(),
    "line": pa.int64(),
    "user_id": pa.string(),
    "item_id": pa.string(),
    "quantity": pa.int64(),
    "unit_cents": pa.int64(),
    "ordered_at": pa.int64(),
    "cancelled": pa.bool_(),
    "offset": pa.int64(),
    "traceparent": pa.string(),
}
"""A line of an order that was confirmed, or cancelled after that."""

STORED = {
    "order_id": pa.string(),
    "line": pa.int64(),
    "user_id": pa.string(),
    "item_id": pa.string(),
    "quantity": pa.int64(),
    "unit_cents": pa.int64(),
    "ordered_at": pa.int64(),
    "weight": pa.int64(),
}
"""A stored order line. Weight 1 counts; 0 is a cancelled line, kept to recognize a repeat."""

UNKNOWN = -1
NEVER = np.iinfo(np.int64).max


SAMPLES = pa.schema({"traceparent": pa.string(), "order_id": pa.string(), "ordered_at": pa.int64()})
"""Orders that a batch counts, and whose traces are recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The effect of a batch of order events. Counts are of orders, not of lines."""

    accepted: pa.Table
    cancelled: pa.Array
    samples: pa.Table
    counted: int
    duplicates: int
    cancellations: int
    ignored: int


def settle(events: pa.Table, stored: pa.Table) -> Settled:
    """Decide on order events (rows of `records.orders`), given the stored lines they may affect.

    A confirmation counts once. A cancellation counts when its order counts and was not cancelled;
    otherwise it is ignored. Kafka's offset is the order of events: all events of one order come
    from one partition, though Spark can deliver their blobs in any order.
    """
    heads = events.filter(pc.equal(events["line"], 0))
    encoded = column(heads, "order_id").dictionary_encode()
    ids, code = encoded.dictionary, encoded.indices.to_numpy()
    offset, cancel = column(heads, "offset").to_numpy(), get_mask(heads, "cancelled")
    weight = get_stored_weight(ids, stored)

    confirmed_at = np.full(len(ids), NEVER)
    np.minimum.at(confirmed_at, code[~cancel], offset[~cancel])
    confirmed_at[weight != UNKNOWN] = -1
    new = ~cancel & (offset == confirmed_at[code])
    out = np.zeros(len(ids), bool)
    out[code[cancel & (offset > confirmed_at[code]) & (weight[code] != 0)]] = True

    accepted_heads = heads.filter(pa.array(new))
    traced = accepted_heads.filter(pc.is_valid(accepted_heads["traceparent"]))
    return Settled(
        accepted=get_accepted_lines(events, ids, confirmed_at, out),
        cancelled=ids.filter(pa.array(out & (weight == 1))),
        samples=traced.select(SAMPLES.names),
        counted=int(new.sum()),
        duplicates=int((~cancel & ~new).sum()),
        cancellations=int(out.sum()),
        ignored=int(cancel.sum() - out.sum()),
    )


def get_stored_weight(ids: pa.Array, stored: pa.Table) -> Integers:
    """1 or 0 for each order that is stored, UNKNOWN for the others."""
    position = find_codes(ids, column(stored, "order_id"))
    weights = np.append(column(stored, "weight").to_numpy(), UNKNOWN)
    result: Integers = weights[position]  # position -1, not found, is the appended UNKNOWN
    return result


def get_accepted_lines(
    events: pa.Table, ids: pa.Array, confirmed_at: Integers, out: Mask
) -> pa.Table:
    """The lines of the orders that this batch confirms, as they are stored."""
    code = find_codes(column(events, "order_id"), ids)
    new = ~get_mask(events, "cancelled") & (
        column(events, "offset").to_numpy() == confirmed_at[code]
    )
    weight = np.where(out[code], 0, 1).astype(np.int64)
    lines = events.append_column("weight", pa.array(weight)).filter(pa.array(new))
    return lines.select(list(STORED)).combine_chunks()


def zero_cancelled(lines: pa.Table, cancelled: pa.Array) -> pa.Table:
    """The stored lines with weight 0 for the cancelled orders."""
    kept = pc.invert(pc.is_in(lines["order_id"], cancelled)).cast(pa.int64())
    weight = pc.multiply(lines["weight"], kept)
    return lines.set_column(lines.schema.get_field_index("weight"), "weight", weight)


def get_mask(table: pa.Table, name: str) -> Mask:
    """A boolean column as a numpy array."""
    values: Mask = column(table, name).to_numpy(zero_copy_only=False)
    return values
