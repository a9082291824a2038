"""The streaming query: three topics, packed, through the one operator, into the sink."""

from collections.abc import Callable, Iterator

# Spark imports pandas for the first stage, while everything waits; here it happens earlier.
import pandas  # type: ignore[import-untyped]  # noqa: F401
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.job.pack import pack_topic
from analytics_spark.job.processor import OUTCOME, CellDeltas
from analytics_spark.job.session import run_in_background
from analytics_spark.job.topics import ITEMS, ORDERS, SCHEMA_VERSION, USERS, Topic
from analytics_spark.settings import SHUFFLE_PARTITIONS_DEFAULT, JobSettings
from shared.messaging import messages
from shared.messaging.bounds import VERSION_FORM
from shared.messaging.reading import COMMITTED_ONLY
from shared.runtime import telemetry

Sink = Callable[[DataFrame, int], None]
Source = Callable[[SparkSession, Topic, JobSettings], DataFrame]

FETCH_WAIT_MAX_MILLISECONDS = 20
"""How long the broker can hold a fetch. Every live batch reads up to the end of its partitions, and
would wait there for Kafka's default of 500 ms."""

POLL_RECORDS_MAX = 10_000
"""More than a fetch of Kafka's usual 1 MiB has. After each poll Spark asks the broker for both ends
of the partition, which costs more than the records that Kafka's default, 500, would bring."""

SAMPLED_TRACEPARENT = "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f][13579bdf]\\z"


def kafka(spark: SparkSession, topic: Topic, settings: JobSettings) -> DataFrame:
    """The records of a topic.

    One source for each topic, and a limit for orders alone: users and items are read as far as they
    go, or they would trail the orders on a cold start, until the watermark had passed orders whose
    users are not known yet.
    """
    limit = get_records_max(topic, settings)
    return (
        spark.readStream.format("kafka")
        .options(**subscription(topic, settings))
        .options(**({} if limit is None else {"maxOffsetsPerTrigger": limit}))
        .load()
    )


def get_records_max(topic: Topic, settings: JobSettings) -> int | None:
    """The limit for the records of a topic in one batch; None: all there are."""
    if topic is ORDERS:
        return settings.records_per_trigger_max
    return settings.table_records_per_trigger_max


def subscription(topic: Topic, settings: JobSettings) -> dict[str, str | int]:
    """Options of Kafka's source, streaming or not."""
    return {
        **{f"kafka.{name}": value for name, value in settings.brokers.java_options.items()},
        "subscribe": topic.name,
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
        "includeHeaders": "true",
        "kafka.isolation.level": COMMITTED_ONLY,
        "kafka.fetch.max.wait.ms": FETCH_WAIT_MAX_MILLISECONDS,
        "kafka.max.poll.records": POLL_RECORDS_MAX,
    }


def count_tasks(topic: Topic, settings: JobSettings) -> int:
    """How many tasks read a topic and check its records.

    Of orders as many as the state has partitions, which are as many as there are cores: more small
    tasks cost more, a dozen on two cores a quarter more than four."""
    if topic is ORDERS:
        return settings.shuffle_partitions or SHUFFLE_PARTITIONS_DEFAULT
    return 1


def begin_first_batch(spark: SparkSession, settings: JobSettings) -> None:
    """Read a few items in the background, so that everything that the first batch needs, from
    Kafka's clients to the Python workers, has started when the query is planned."""

    def read_items() -> None:
        source = spark.read.format("kafka").options(**subscription(ITEMS, settings))
        source.load().select("value").mapInArrow(pass_through, "value binary").take(1)

    run_in_background(read_items)


def pass_through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def outcomes(spark: SparkSession, settings: JobSettings, source: Source = kafka) -> DataFrame:
    """The operator's rows: cell deltas and counts of each batch and bucket."""
    users, items, orders = (
        pack_topic(
            select_records(source(spark, topic, settings), topic, settings), topic, settings.buckets
        )
        for topic in (USERS, ITEMS, ORDERS)
    )
    return (
        users.union(items)
        .union(orders)
        .withWatermark("event_time", f"{settings.lateness_seconds} seconds")
        .groupBy("bucket")
        .transformWithStateInPandas(
            CellDeltas(), outputStructType=OUTCOME, outputMode="Update", timeMode="EventTime"
        )
    )


def select_records(records: DataFrame, topic: Topic, settings: JobSettings) -> DataFrame:
    """The records of the types that matter, with the columns of `records.check`."""
    type_, traceparent = header(messages.TYPE), header(telemetry.TRACEPARENT)
    # A record without a type is kept, to be dead-lettered, and so is one of an unknown version: the
    # meaning of its fields must not be guessed.
    matters = type_.isNull() | type_.isin(*sorted(topic.types))
    # As the services write it, without a search by a form; or as others may.
    is_known_version = (header(messages.SCHEMA_VERSION) == str(SCHEMA_VERSION)) | (
        version(messages.SCHEMA_VERSION) == SCHEMA_VERSION
    )
    seq = F.lit(None).cast("long") if topic is ORDERS else version(messages.STREAM_VERSION)
    return (
        records.where(matters)
        .coalesce(count_tasks(topic, settings))
        .select(
            F.expr(f"cast(pmod(hash(cast(key AS string)), {settings.buckets}) AS int) AS bucket"),
            "key",
            "value",
            F.when(is_known_version, type_).alias("type"),
            seq.alias("seq"),
            "partition",
            "offset",
            F.unix_millis("timestamp").alias("time"),
            F.when(traceparent.rlike(SAMPLED_TRACEPARENT), traceparent).alias("traceparent"),
        )
    )


def version(name: str) -> Column:
    """The number in a header, by the form that workers require; null when it has another."""
    text = header(name)
    return F.when(text.rlike(rf"^{VERSION_FORM}\z"), text).cast("long")


def header(name: str) -> Column:
    """The text of the record's first header of that name; null when there is none.

    Built-in functions only: Spark interprets a lambda, element by element, at ten times the cost
    of everything else that it does with a record. And no array of all values (`headers.value`),
    into which Spark copies each of them.
    """
    place = F.array_position("headers.key", name).cast("int") - 1
    return F.get("headers", place)["value"].cast("string")


def start(
    frame: DataFrame,
    sink: Sink,
    settings: JobSettings,
    *,
    available_now: bool = False,
    once: bool = False,
) -> StreamingQuery:
    """Start the query. It runs until it is stopped or fails; with `available_now`, until it has
    read the records that the topics have now; with `once`, for one batch, which is the one that
    was left unfinished, if there is one."""
    writer = (
        frame.writeStream.queryName("cells")
        .outputMode("update")
        .foreachBatch(sink)
        .option("checkpointLocation", Checkpoint(settings.checkpoint_dir).location)
    )
    if available_now:
        return writer.trigger(availableNow=True).start()
    if once:
        return writer.trigger(once=True).start()
    interval = f"{settings.trigger_milliseconds} milliseconds"
    return writer.trigger(processingTime=interval).start()
