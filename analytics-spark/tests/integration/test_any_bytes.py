"""Whatever another program writes to a topic, the job gives each record one end and goes on."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import NewTopic
from aiokafka.errors import InvalidTimestampError
from aiokafka.structs import ConsumerRecord
from pyspark.sql import SparkSession

from analytics_spark.job.dead_letters import READER as JOB
from analytics_spark.job.records import FUTURE_MAX_MILLISECONDS
from analytics_spark.settings import JobSettings
from shared.messaging.kafka import NotAcknowledged
from shared.messaging.topics import AGE_MILLISECONDS_MAX, AHEAD_MILLISECONDS_MAX, TOPICS
from shared.runtime.identifiers import new_id
from test_support.analytics.histories import HOUR, Event, at, cancelled, confirmed, sample
from test_support.analytics.running_job import RunningJob
from test_support.kafka_admin import create_topics
from test_support.raw_records import NOT_UTF_8, many_headers, raw, write_each
from verification.drill.hostile_records import Author, Writer, compare, read_letters

SAMPLE = (4, 4, 12, 44_506_56)
GROUPS = 10
"""Of records of a campaign, in each topic."""
TOPIC, PARTITION = "orders.v1", 0
PLACE = (TOPIC, PARTITION)
LARGE = b"0" * (3 * 1024 * 1024)
"""More than a topic takes, unless it is compressed."""

BEYOND_SPARK = -(10**16)
"""In milliseconds; in microseconds, it does not fit into 64 bits."""

TYPE, VERSION = b"ce_type", b"ce_schemaversion"

BAD = [
    raw(*PLACE, (NOT_UTF_8, b"x")),
    raw(*PLACE, (b"\xe2\x82", None), (b"", b"")),
    raw(*PLACE, key=None, value=None),
    raw(*PLACE, key=NOT_UTF_8, value=NOT_UTF_8),
    raw(*PLACE, (TYPE, b"order-confirmed"), (VERSION, b"1"), (NOT_UTF_8, b""), value=b"\0"),
    raw(*PLACE, (TYPE, None)),
    raw(*PLACE, (TYPE, b"order-confirmed"), (VERSION, NOT_UTF_8)),
    *(raw(*PLACE, milliseconds=each) for each in (-1, 0, 1, -1_000)),
    raw(*PLACE, *many_headers(1_000)),
]


def origins(letters: Sequence[ConsumerRecord]) -> list[int]:
    """The offsets of what lies in the one partition."""
    found = [dict(each.headers) for each in letters]
    return sorted(int(each["dlq_offset"]) for each in found if each["dlq_topic"] == b"orders.v1")


def test_each_record_has_one_end(live: RunningJob, settings: JobSettings) -> None:
    oldest = time.time_ns() // 1_000_000 - AGE_MILLISECONDS_MAX + 60_000
    bad = [*BAD, raw(*PLACE, milliseconds=oldest)]
    offsets = asyncio.run(write_each(settings.kafka_bootstrap_servers, bad))

    live.read(*sample())

    assert live.hour(HOUR) == SAMPLE
    assert live.epoch("bad") == len(bad)
    assert origins(live.dead_letters()) == offsets


@pytest.mark.parametrize("seed", [1, 2])
def test_each_record_of_a_campaign_has_one_end(
    live: RunningJob, settings: JobSettings, seed: int
) -> None:
    """The records of the drill, of which workers read the same ones."""
    servers, chance = settings.kafka_bootstrap_servers, Random(seed)
    writer = Writer(servers, chance, [JOB])

    async def write() -> None:
        for author in [Author(chance, topic) for topic in TOPICS] * GROUPS:
            await writer.write(author.topic, author.make_group())

    asyncio.run(write())
    live.read(*sample())

    letters = asyncio.run(read_letters(servers))
    found = Counter({end: count for end, count in letters.items() if end[0] == JOB})
    assert found
    assert compare(writer.expected, found) == []
    assert live.hour(HOUR) == SAMPLE


async def send_compressed(servers: str, codec: str, *events: Event) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=servers, compression_type=codec, max_request_size=2 * len(LARGE)
    ) as producer:
        for event in events:
            await producer.send_and_wait(
                event.topic, event.value, key=event.key.encode(), headers=event.headers
            )


def test_records_are_read_in_any_compression_and_size(
    live: RunningJob, settings: JobSettings
) -> None:
    """What is too large for a letter stays where it is: the letter names the place."""
    codecs = ["gzip", "snappy", "lz4", "zstd"]
    for codec in codecs:
        order = confirmed(codec, "Jack", ("iphone", 1), ordered_at=at(10))
        large = replace(order, data=LARGE)
        asyncio.run(send_compressed(settings.kafka_bootstrap_servers, codec, large, order))

    live.read(*sample())

    assert live.epoch("bad") == len(codecs)
    assert live.epoch("counted") == 16 + len(codecs)
    letters = [(each.value, dict(each.headers)) for each in live.dead_letters()]
    assert [value for value, _ in letters] == [None] * len(codecs)
    assert all(int(headers["dlq_bytes"]) > len(LARGE) for _, headers in letters)


async def transact(servers: str, event: Event, *, is_committed: bool) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=servers, transactional_id=str(new_id())
    ) as producer:
        await producer.begin_transaction()
        await producer.send_and_wait(
            event.topic, event.value, key=event.key.encode(), headers=event.headers
        )
        await (producer.commit_transaction() if is_committed else producer.abort_transaction())


def test_a_record_of_an_aborted_transaction_was_never_sent(
    live: RunningJob, settings: JobSettings
) -> None:
    servers = settings.kafka_bootstrap_servers
    order = confirmed("order", "Jack", ("iphone", 1), ordered_at=at(10))
    undone = cancelled("order", "Jack", ("iphone", 1), ordered_at=at(10))
    asyncio.run(transact(servers, order, is_committed=True))
    asyncio.run(transact(servers, undone, is_committed=False))
    asyncio.run(transact(servers, replace(order, data=b"{}"), is_committed=False))

    live.read(*sample())

    assert (live.epoch("counted"), live.epoch("cancellations")) == (17, 0)
    assert live.dead_letters() == []


def test_no_record_can_make_the_orders_of_now_late() -> None:
    """An order can be so much ahead of the time of its record, and that so much ahead of now."""
    ahead = AHEAD_MILLISECONDS_MAX + FUTURE_MAX_MILLISECONDS
    assert ahead < JobSettings.model_fields["lateness_seconds"].default * 1000


@pytest.mark.parametrize(
    "milliseconds",
    [BEYOND_SPARK, time.time_ns() // 1_000_000 + 2 * AHEAD_MILLISECONDS_MAX],
    ids=["old", "ahead"],
)
def test_the_writer_of_a_time_beyond_the_bounds_is_refused(
    settings: JobSettings, milliseconds: int
) -> None:
    with pytest.raises(NotAcknowledged) as refusal:
        asyncio.run(
            write_each(settings.kafka_bootstrap_servers, [raw(*PLACE, milliseconds=milliseconds)])
        )

    assert isinstance(refusal.value.errors[PLACE], InvalidTimestampError)


def test_spark_cannot_read_such_a_time(spark: SparkSession, settings: JobSettings) -> None:
    """The negative control: on a topic without that bound."""
    servers, topic = settings.kafka_bootstrap_servers, f"unbounded-{new_id()}"

    async def write_to_new_topic() -> None:
        unbounded = {"message.timestamp.before.max.ms": str(2**63 - 1)}
        await create_topics(servers, NewTopic(topic, 1, 1, topic_configs=unbounded))
        await write_each(servers, [raw(topic, 0, milliseconds=BEYOND_SPARK)])

    asyncio.run(write_to_new_topic())
    source = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)

    with pytest.raises(Exception, match="overflows"):
        source.option("subscribe", topic).load().collect()
