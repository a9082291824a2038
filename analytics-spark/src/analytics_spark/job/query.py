"""The streaming query: three topics, packed, through the one operator, into the sink."""

from collections.abc import Callable, Iterator

# Spark imports pandas for the first stage, while everything waits; here it happens earlier.
import pandas  # type: ignore[import-untyped]  # noqa: F401
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from analytics_spark.job.processor import OUTCOME, CellDeltas
from analytics_spark.job.session import run_in_background
from analytics_spark.job.source import ShopTopics, get_options
from analytics_spark.job.topics import ORDERS, Topic
from analytics_spark.settings import JobSettings

Sink = Callable[[DataFrame, int], None]
Source = Callable[[SparkSession, JobSettings], DataFrame]


def read_topics(spark: SparkSession, settings: JobSettings) -> DataFrame:
    """The packed records of the topics.

    Orders have a limit, users and items are read as far as they go, or they would trail the orders
    on a cold start, until the watermark had passed orders whose users are not known yet.
    """
    options = get_options(
        settings.brokers.to_text(),
        settings.buckets,
        settings.records_per_trigger_max,
        settings.table_records_per_trigger_max,
    )
    return spark.readStream.format(ShopTopics.name()).options(**options).load()


def get_records_max(topic: Topic, settings: JobSettings) -> int | None:
    """The limit for the records of a topic in one batch; None: all there are."""
    if topic is ORDERS:
        return settings.records_per_trigger_max
    return settings.table_records_per_trigger_max


def begin_first_batch(spark: SparkSession) -> None:
    """Run a Python task in the background, so that the workers have started when the query is
    planned."""

    def run_task() -> None:
        spark.range(1).mapInArrow(pass_through, "id long").collect()

    run_in_background(run_task)


def pass_through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def outcomes(spark: SparkSession, settings: JobSettings, source: Source = read_topics) -> DataFrame:
    """The operator's rows: cell deltas and counts of each batch and bucket."""
    return (
        source(spark, settings)
        .withWatermark("event_time", f"{settings.lateness_seconds} seconds")
        .groupBy("bucket")
        .transformWithStateInPandas(
            CellDeltas(), outputStructType=OUTCOME, outputMode="Update", timeMode="EventTime"
        )
    )


def start(
    frame: DataFrame, sink: Sink, settings: JobSettings, *, available_now: bool = False
) -> StreamingQuery:
    """Start the query. It runs until it is stopped or fails; with `available_now`, until it has
    read the records that the topics have now."""
    writer = (
        frame.writeStream.queryName("cells")
        .outputMode("update")
        .foreachBatch(sink)
        .option("checkpointLocation", settings.checkpoint_dir.absolute().as_uri())
    )
    if available_now:
        return writer.trigger(availableNow=True).start()
    interval = f"{settings.trigger_milliseconds} milliseconds"
    return writer.trigger(processingTime=interval).start()
