"""The job without Spark: packing and the operator, with state in memory, batch by batch."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark.sql.streaming.tws_tester import TwsTester

from analytics_spark.job.blobs import from_bytes
from analytics_spark.job.cells import KEY, NOBODY, SALE_KEY, VALUES
from analytics_spark.job.pack import pack
from analytics_spark.job.parts import STATE_NAME
from analytics_spark.job.processor import CellDeltas
from analytics_spark.job.topics import ITEMS, ORDERS, USERS, Kind
from test_support.analytics.histories import Event

LATENESS_MILLISECONDS = 7_200_000
RECORDED_AT = 4_000_000_000_000
"""Every record's own time, in milliseconds: after all orders, so that none is from the future."""

TOPICS = {topic.name: topic for topic in (USERS, ITEMS, ORDERS)}

Cell = tuple[object, ...]
Amounts = tuple[int, ...]


class SmallJob:
    """What Spark would do: group by bucket, keep state, move the watermark between batches."""

    def __init__(self, *, buckets: int = 4) -> None:
        self._buckets = buckets
        # Blobs have no event time, so Spark would filter none of them either.
        self._tester = TwsTester(
            CellDeltas(), timeMode="EventTime", eventTimeExtractor=lambda row: 1 << 62
        )
        self._latest = 0
        self._watermark = 0
        self._cells: defaultdict[Cell, Counter[str]] = defaultdict(Counter)
        self._sales: defaultdict[Cell, Counter[str]] = defaultdict(Counter)
        self.tally: Counter[str] = Counter()
        self.samples: list[dict[str, object]] = []
        self.recorded: list[int] = []
        self.bad_records: list[dict[str, object]] = []

    def read(self, *events: Event) -> "SmallJob":
        """One batch with these records."""
        by_bucket: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in pack_events(events, self._buckets):
            if row["kind"] == Kind.CLOCK:
                self._latest = max(self._latest, milliseconds(row["event_time"]))
            by_bucket[row["bucket"]].append(row)
        for bucket, rows in by_bucket.items():
            self._merge(self._tester.testInPandas(bucket, pd.DataFrame(rows)))
        self._advance_watermark()
        return self

    @property
    def watermark(self) -> int:
        """Of the next batch, in milliseconds; 0 before there is one."""
        return self._watermark

    def cells(self) -> dict[Cell, Amounts]:
        """Cells of which something is left, by their key."""
        return get_sums(self._cells)

    def sales(self) -> dict[Cell, Amounts]:
        """Sales of which something is left, by their key."""
        return get_sums(self._sales)

    def hour(self, hour: datetime) -> tuple[int, int, int, int]:
        """Local buyers, purchases, quantity and cents of an hour."""
        of_hour = {
            cell: amounts
            for cell, amounts in self.cells().items()
            if cell[0] == milliseconds(hour) and get_buyer(cell) != NOBODY
        }
        return len({get_buyer(cell) for cell in of_hour}), *sum_amounts(of_hour.values())

    def everything(self, hour: datetime) -> Amounts:
        """Purchases, quantity and cents of an hour, local or not."""
        cells = self.cells().items()
        return sum_amounts([amounts for cell, amounts in cells if cell[0] == milliseconds(hour)])

    def chunks(self) -> list[int]:
        """How many chunks of orders each bucket keeps."""
        parts = [self._tester.peekMapState(STATE_NAME, bucket) for bucket in range(self._buckets)]
        return [sum(number >= 0 for (number,) in each) for each in parts]

    def _merge(self, outcomes: pd.DataFrame) -> None:
        for outcome in outcomes.to_dict("records"):
            for name, key, sums in (
                ("cells", KEY, self._cells),
                ("sales", SALE_KEY, self._sales),
            ):
                for delta in from_bytes(outcome[name]).to_pylist():
                    row = tuple(delta[each] for each in key)
                    sums[row].update({value: delta[value] for value in VALUES})
            for name in ("counted", "late", "duplicates", "cancellations", "ignored", "bad"):
                self.tally[name] += outcome[name]
            self.samples += from_bytes(outcome["samples"]).to_pylist()
            self.recorded += from_bytes(outcome["recorded"])["recorded_at"].to_pylist()
            self.bad_records += from_bytes(outcome["bad_records"]).to_pylist()

    def _advance_watermark(self) -> None:
        watermark = self._latest - LATENESS_MILLISECONDS
        if watermark > self._watermark:
            self._tester.setWatermark(watermark)
            self._watermark = watermark


def get_sums(rows: Mapping[Cell, Counter[str]]) -> dict[Cell, Amounts]:
    return {
        row: tuple(sums[value] for value in VALUES)
        for row, sums in rows.items()
        if any(sums.values())
    }


def get_buyer(cell: Cell) -> object:
    return cell[KEY.index("user_id")]


def sum_amounts(rows: Collection[Amounts]) -> tuple[int, int, int]:
    purchases, quantity, cents = (sum(row[index] for row in rows) for index in range(len(VALUES)))
    return purchases, quantity, cents


def pack_events(events: Sequence[Event], buckets: int) -> Iterable[dict[str, Any]]:
    """The rows of the pack stage, one task for each topic."""
    for topic in TOPICS.values():
        of_topic = [event for event in events if event.topic == topic.name]
        batch = to_record_batch(of_topic, buckets)
        for packed_batch in pack(iter([batch]), topic=topic, buckets=buckets):
            yield from packed_batch.to_pylist()


def to_record_batch(events: Sequence[Event], buckets: int) -> pa.RecordBatch:
    """What the job's sources select of Kafka's records."""
    columns = {
        "bucket": pa.array([sum(event.key.encode()) % buckets for event in events], pa.int32()),
        "key": pa.array([event.key.encode() for event in events], pa.binary()),
        "value": pa.array([event.value for event in events], pa.binary()),
        "type": pa.array([event.type for event in events], pa.string()),
        "seq": pa.array([event.version for event in events], pa.int64()),
        "partition": pa.array([0 for _ in events], pa.int32()),
        "offset": pa.array([event.number for event in events], pa.int64()),
        "time": pa.array([RECORDED_AT for _ in events], pa.int64()),
        "traceparent": pa.array([event.traceparent for event in events], pa.string()),
    }
    return pa.RecordBatch.from_pydict(columns)


def milliseconds(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)
