"""Windows in Spark: the watermark decides what is too late, the output mode when a row comes.

`grace`: seconds that a record may be behind the newest one.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle


def count_tumbling(records: DataFrame, grace: int = 60) -> DataStreamWriter:
    """Each 5 seconds by themselves. A late record corrects its window."""
    return count_in(F.window("time", "5 seconds"), records, grace).outputMode("update")


def count_final(records: DataFrame, grace: int = 60) -> DataStreamWriter:
    """The same, with one row of each window, when no record can change it any more."""
    return count_in(F.window("time", "5 seconds"), records, grace).outputMode("append")


def count_hopping(records: DataFrame, grace: int = 4 * 3600) -> DataStreamWriter:
    """5 minutes, once a minute: each record is in five windows."""
    return count_in(F.window("time", "5 minutes", "1 minute"), records, grace).outputMode("update")


def count_unaligned(records: DataFrame, grace: int = 60) -> DataStreamWriter:
    """5 minutes that begin 2 minutes past each fifth one."""
    window = F.window("time", "5 minutes", "5 minutes", "2 minutes")
    return count_in(window, records, grace).outputMode("update")


def count_sessions(records: DataFrame, grace: int = 1800) -> DataStreamWriter:
    """Visits that end after 30 minutes without a click. A late click can join two of them."""
    return count_in(F.session_window("time", "30 minutes"), records, grace).outputMode("append")


def count_in(window: Column, records: DataFrame, grace: int) -> DataStreamWriter:
    return (
        records.withWatermark("time", f"{grace} seconds")
        .groupBy("key", window.alias("window"))
        .count()
        .select("key", "window.start", "window.end", "count")
        .writeStream
    )


def summarize_trades(records: DataFrame, grace: int = 60) -> DataStreamWriter:
    """Of each ticker, every second, the last 5: number of trades, lowest and average ask."""
    ask = F.col("value").cast("double")
    return (
        records.withWatermark("time", f"{grace} seconds")
        .groupBy("key", F.window("time", "5 seconds", "1 second").alias("window"))
        .agg(F.count("*").alias("trades"), F.min(ask).alias("lowest"), F.avg(ask).alias("average"))
        .select("key", "window.start", "trades", "lowest", "average")
        .writeStream.outputMode("update")
    )


class Silence(StatefulProcessor):
    """Reports a key that had no record for SECONDS of event time."""

    SECONDS = 60

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._last = handle.getValueState("last", "at long")

    def handleInputRows(
        self, key: tuple[str], rows: Iterator[Row], timerValues: object
    ) -> Iterator[Row]:
        (last,) = self._last.get() or (0,)
        newest = max(to_milliseconds(row["time"]) for row in rows)
        if newest > last:
            if last:
                self._handle.deleteTimer(last + 1000 * self.SECONDS)
            self._handle.registerTimer(newest + 1000 * self.SECONDS)
            self._last.update((newest,))
        return iter(())

    def handleExpiredTimer(
        self, key: tuple[str], timerValues: object, expiredTimerInfo: object
    ) -> Iterator[Row]:
        (last,) = self._last.get() or (0,)
        self._last.clear()
        yield Row(key=key[0], silent_since=datetime.fromtimestamp(last / 1000, UTC))

    def close(self) -> None:
        pass


def to_milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def report_silence(records: DataFrame, grace: int = 1) -> DataStreamWriter:
    """A timer: a row because nothing came."""
    return (
        records.withWatermark("time", f"{grace} seconds")
        .groupBy("key")
        .transformWithState(
            Silence(),
            outputStructType="key string, silent_since timestamp",
            outputMode="Append",
            timeMode="EventTime",
        )
        .writeStream.outputMode("append")
    )


def count_by_arrival(records: DataFrame, grace: int = 60) -> DataStreamWriter:
    """Wrong: by the clock of this machine. Read again, the same records are counted elsewhere."""
    arrived = records.withColumn("time", F.current_timestamp())
    return count_in(F.window("time", "5 seconds"), arrived, grace).outputMode("update")


def count_without_grace(records: DataFrame, grace: int = 0) -> DataStreamWriter:
    """Wrong: what is late is dropped, without a trace in the counts."""
    return count_tumbling(records, grace)
