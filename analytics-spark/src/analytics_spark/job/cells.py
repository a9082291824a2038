"""The contributions of orders to cells: the as-of join of order lines with users and items."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics_spark.job.blobs import column
from analytics_spark.job.orders import zero_cancelled
from analytics_spark.job.versions import Changes, Mask, Versions

HOUR_MILLISECONDS = 3_600_000

KEY = ["hour", "item_id", "item_type", "address", "gender", "user_id"]
"""A cell has one user, because distinct users cannot be summed: readers count them. Purchases that
are not local have neither user nor item, so that they make few cells."""
NOBODY = ""
"""The user and item of cells that are not local, and every unknown attribute: in a key, NULL would
equal nothing, not even itself."""
VALUES = ["purchases", "quantity", "cents"]

SALE_KEY = ["hour", "item_id", "item_type", "origin"]
"""The sales of an hour are all its purchases by item, of whomever: one row for each item that was
bought, where cells of all purchases by item and place would be many."""

DELTAS = pa.schema(dict.fromkeys(KEY, pa.string()) | dict.fromkeys(["hour", *VALUES], pa.int64()))
"""Signed changes of cells; the hour is in milliseconds."""
SALES = pa.schema(
    dict.fromkeys(SALE_KEY, pa.string()) | dict.fromkeys(["hour", *VALUES], pa.int64())
)
"""Signed changes of sales."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The versions of users and of items."""

    users: Versions
    items: Versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """The tables before and after a batch, and the keys that the batch changed."""

    before: Tables
    after: Tables
    users: Changes
    items: Changes

    @property
    def since(self) -> int | None:
        """The earliest time (milliseconds) of a change; None without changes."""
        firsts = [each.first for each in (self.users, self.items) if each.first is not None]
        return min(firsts, default=None)

    def find_touched(self, lines: pa.Table) -> Mask:
        """A mask of the lines whose versions may differ after the batch."""
        times = column(lines, "ordered_at").to_numpy()
        touched: Mask = self.users.touch(column(lines, "user_id"), times)
        return touched | self.items.touch(column(lines, "item_id"), times)


def corrections(
    stored: pa.Table, cancelled: pa.Array, advance: Advance, watermark: int
) -> list[pa.Table]:
    """Deltas that subtract the old contribution of the affected stored lines, and add the new one.

    Orders up to the watermark (milliseconds) are final: they keep what they contributed.
    """
    affected = advance.find_touched(stored) | pc.is_in(stored["order_id"], cancelled).to_numpy()
    affected &= column(stored, "ordered_at").to_numpy() > watermark
    lines = stored.filter(pa.array(affected)).combine_chunks()
    return [
        contributions(lines, advance.before, -1),
        contributions(zero_cancelled(lines, cancelled), advance.after, 1),
    ]


def contributions(lines: pa.Table, tables: Tables, sign: int) -> pa.Table:
    """Signed cell deltas of the lines, each with the item that was sold and its origin.

    A line is local if its user lived where the item comes from.

    Address and origin are those valid at the order's time; a missing one equals nothing. The
    amount is quantity times the line's own price.
    """
    times = column(lines, "ordered_at").to_numpy()
    user = tables.users.find(column(lines, "user_id"), times)
    item = tables.items.find(column(lines, "item_id"), times)
    address, origin = tables.users.take("address", user), tables.items.take("origin", item)
    local = pc.fill_null(pc.equal(address, origin), False)
    weight = pc.multiply(lines["weight"], sign)
    quantity = pc.multiply(lines["quantity"], weight)
    return pa.table(
        {
            "hour": times - times % HOUR_MILLISECONDS,
            "item_id": pc.if_else(local, lines["item_id"], NOBODY),
            "item_type": pc.fill_null(tables.items.take("type", item), NOBODY),
            "address": pc.fill_null(address, NOBODY),
            "gender": pc.fill_null(tables.users.take("gender", user), NOBODY),
            "user_id": pc.if_else(local, lines["user_id"], NOBODY),
            "sold": lines["item_id"],
            "origin": pc.fill_null(origin, NOBODY),
            "purchases": weight,
            "quantity": quantity,
            "cents": pc.multiply(quantity, lines["unit_cents"]),
        }
    )


def sum_cells(deltas: list[pa.Table]) -> pa.Table:
    """The deltas summed by cell, without cells that do not change."""
    return sum_by(KEY, deltas)


def sum_sales(deltas: list[pa.Table]) -> pa.Table:
    """The deltas summed by sale, without sales that do not change."""
    return sum_by(SALE_KEY, deltas)


def to_sales(contributed: pa.Table) -> pa.Table:
    """The contributions of lines to sales."""
    names = ["hour", "sold", "item_type", "origin", *VALUES]
    return contributed.select(names).rename_columns(SALE_KEY + VALUES)


def sum_by(key: list[str], deltas: list[pa.Table]) -> pa.Table:
    grouped = pa.concat_tables(deltas).group_by(key, use_threads=False)
    sums = grouped.aggregate([(value, "sum") for value in VALUES])
    sums = sums.select(key + [f"{value}_sum" for value in VALUES]).rename_columns(key + VALUES)
    changed = np.zeros(sums.num_rows, bool)
    for value in VALUES:
        changed |= column(sums, value).to_numpy() != 0
    return sums.filter(pa.array(changed)).combine_chunks()
