"""The one stateful operator: a bucket of users with its orders, and the items, to cell deltas."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
    ValueState,
)

from analytics_spark.job.blobs import column, from_bytes, to_bytes
from analytics_spark.job.cells import Advance, Tables, contributions, corrections, sum_cells
from analytics_spark.job.orders import EVENTS, STORED, Settled, settle, zero_cancelled
from analytics_spark.job.records import BAD
from analytics_spark.job.retained import BLOB, CHUNK, RetainedOrders
from analytics_spark.job.topics import ITEM_ATTRIBUTES, USER_ATTRIBUTES, Kind
from analytics_spark.job.versions import Changes, Versions

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

OUTCOME = (
    "watermark long, latest long, counted long, late long, duplicates long, cancellations long,"
    " ignored long, bad long, cells binary, samples binary, bad_records binary"
)
"""One row for each bucket that had input; times in milliseconds, tables as blobs."""

VERSION = {"key": pa.string(), "valid_from": pa.int64(), "seq": pa.int64()}
ARRIVING = {
    Kind.ORDERS: pa.schema(EVENTS),
    Kind.USERS: pa.schema(VERSION | USER_ATTRIBUTES),
    Kind.ITEMS: pa.schema(VERSION | ITEM_ATTRIBUTES),
    Kind.BAD: BAD,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """The input of one bucket in one batch; the tables can be empty."""

    orders: pa.Table
    users: pa.Table
    items: pa.Table
    bad: pa.Table


class CellDeltas(StatefulProcessor):
    """State of a bucket: its users and all items, with the versions that still matter, and the
    orders newer than the watermark."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._users = handle.getValueState("users", BLOB)
        self._items = handle.getValueState("items", BLOB)
        self._index = handle.getValueState("index", BLOB)
        self._chunks = handle.getMapState("chunks", CHUNK, BLOB)

    def handleInputRows(
        self, key: Any, rows: Iterator["pd.DataFrame"], timerValues: TimerValues
    ) -> Iterator["pd.DataFrame"]:
        # Imported here: at each start Spark reads the state's schema in a separate process, and
        # waits for the imports of this module.
        import pandas as pd

        outcome = self._apply(unpack(rows), timerValues.getCurrentWatermarkInMs())
        yield pd.DataFrame([outcome])

    def close(self) -> None:
        pass

    def _apply(self, arrived: Arrived, watermark: int) -> dict[str, object]:
        """Correct the stored orders, count the new ones, and return the cell deltas."""
        advance = self._advance(arrived, watermark)
        late = pc.less_equal(arrived.orders["ordered_at"], watermark)
        events = arrived.orders.filter(pc.invert(late))
        retained = RetainedOrders(self._index, self._chunks)
        chunks = retained.find_affected(column(events, "ordered_at").to_numpy(), advance.since)
        stored = pa.concat_tables([pa.schema(STORED).empty_table(), *chunks.values()])
        settled = settle(events, stored)
        deltas = corrections(stored, settled.cancelled, advance, watermark)
        deltas.append(contributions(settled.accepted, advance.after, 1))
        store_orders(retained, chunks, settled, watermark)
        return {
            "watermark": watermark,
            "latest": pc.max(events["ordered_at"]).as_py(),
            **get_tallies(settled, arrived.orders.filter(late)),
            "bad": arrived.bad.num_rows,
            "cells": to_bytes(sum_cells(deltas)),
            "samples": to_bytes(settled.samples),
            "bad_records": to_bytes(arrived.bad),
        }

    def _advance(self, arrived: Arrived, watermark: int) -> Advance:
        """Bring users and items to their new versions."""
        before = Tables(
            users=load_versions(self._users, USER_ATTRIBUTES),
            items=load_versions(self._items, ITEM_ATTRIBUTES),
        )
        after = Tables(
            users=before.users.merge(arrived.users, watermark),
            items=before.items.merge(arrived.items, watermark),
        )
        if after.users is not before.users:
            self._users.update((after.users.to_bytes(),))
        if after.items is not before.items:
            self._items.update((after.items.to_bytes(),))
        return Advance(
            before=before,
            after=after,
            users=Changes(arrived.users),
            items=Changes(arrived.items),
        )


def unpack(frames: Iterator["pd.DataFrame"]) -> Arrived:
    """The rows of `pack`; those of a bucket can come in several frames."""
    tables = {kind: [schema.empty_table()] for kind, schema in ARRIVING.items()}
    for frame in frames:
        for kind, body in zip(frame["kind"], frame["body"], strict=True):
            if kind in tables:
                tables[kind].append(from_bytes(body))
    joined = {kind: pa.concat_tables(parts).combine_chunks() for kind, parts in tables.items()}
    return Arrived(
        orders=joined[Kind.ORDERS],
        users=joined[Kind.USERS],
        items=joined[Kind.ITEMS],
        bad=joined[Kind.BAD],
    )


def load_versions(state: ValueState, attributes: Mapping[str, pa.DataType]) -> Versions:
    value = state.get()
    return Versions.from_bytes(value[0]) if value else Versions.empty(attributes)


def store_orders(
    retained: RetainedOrders, chunks: Mapping[int, pa.Table], settled: Settled, watermark: int
) -> None:
    """Store the effect of the batch on the orders."""
    for chunk, lines in chunks.items():
        if pc.any(pc.is_in(lines["order_id"], settled.cancelled)).as_py():
            retained.replace(chunk, zero_cancelled(lines, settled.cancelled))
    if settled.accepted.num_rows:
        retained.append(settled.accepted)
    retained.evict(watermark)
    retained.save()


def get_tallies(settled: Settled, late: pa.Table) -> dict[str, int]:
    """Orders by what became of them; a cancellation that comes too late is an ignored one."""
    heads = late.filter(pc.equal(late["line"], 0))
    late_cancellations = pc.sum(heads["cancelled"]).as_py() or 0
    return {
        "counted": settled.counted,
        "late": heads.num_rows - late_cancellations,
        "duplicates": settled.duplicates,
        "cancellations": settled.cancellations,
        "ignored": settled.ignored + late_cancellations,
    }
