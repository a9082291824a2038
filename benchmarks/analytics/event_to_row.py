"""latency: from an append in Kafka to the row, and from the job's start to its first batch."""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import NewTopic

from benchmarks import servers
from benchmarks.analytics import counting, process_tree
from benchmarks.analytics.counting import Job, SeenBatch
from benchmarks.analytics.job_sizes import Size
from benchmarks.analytics.shop_history import ORDERS_TOPIC, ShopHistory
from benchmarks.arrivals import percentiles
from benchmarks.goals import at_most
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from fetching.errors import Failure
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import StackContext, StackSpec
from shared.messaging import kafka, topics
from shared.messaging.topics import DOMAIN_TOPIC
from shared.runtime.brokers import Brokers
from shared.runtime.progress import tell_in_place
from test_support.analytics.running_job import empty_topics
from test_support.kafka_admin import create_topics

TICK_SECONDS = 0.02
WAITING_ORDERS = 100
"""Published before the job starts."""
START_SECONDS_MAX = 300
END_SECONDS_MAX = 60
READ_SECONDS_MAX = 60
MILLISECONDS = 1_000

COLD = "from the start of the process to the first batch in the tables"
APPENDED = "from the append in Kafka to the row"
USED = "CPU of the job"
RANKS = ("p50", "p99")
LIVE_RATE = 100
"""Orders per second up to which the job is to be live. It may rest at more than that."""


async def measure(context: StackContext, size: Size) -> list[Series]:
    samples = Samples(list)
    await create_all_topics(context.address("kafka"))
    client = kafka.create_producer(Brokers(context.address("kafka")), "bench")
    await client.start()
    try:
        for number in range(1, size.rounds + 1):
            tell_in_place(f"latency: round {number} of {size.rounds}")
            await empty_topics(context.address("kafka"))
            await one_round(context, client, size, samples)
    finally:
        await kafka.close(client)
    cold = series(samples, COLD, "s", goal=at_most(15))
    return [cold, *(each for rate in size.rates for each in as_series(samples, rate))]


def as_series(samples: Samples, rate: int) -> list[Series]:
    goal = at_most(2_000 if rate <= LIVE_RATE else 6_000)
    return [
        *(series(samples, at_rate(f"{APPENDED}, {rank}", rate), "ms", goal=goal) for rank in RANKS),
        series(samples, at_rate(USED, rate), "cores"),
    ]


def at_rate(what: str, rate: int) -> str:
    return f"{what}, {rate:,} orders per second"


async def one_round(
    context: StackContext, client: AIOKafkaProducer, size: Size, samples: Samples
) -> None:
    """Measure a job with default settings; the shop is already open when it starts."""
    history = ShopHistory(1, users=size.users, items=size.items)
    await kafka.publish(client, [*history.opening(), *history.now(WAITING_ORDERS)])
    async with counting.run_job(context, {}) as job:
        first = await job.batches(counting.has_counted(WAITING_ORDERS), START_SECONDS_MAX)
        samples[COLD].append(first[0].seen_at - job.started_at)
        for rate in size.rates:
            await one_rate(context, client, size, job, history, rate, samples)
        await job.demand_totals(history.totals)


async def one_rate(
    context: StackContext,
    client: AIOKafkaProducer,
    size: Size,
    job: Job,
    history: ShopHistory,
    rate: int,
    samples: Samples,
) -> None:
    """Measure the orders of `seconds`, after a warm-up at the same rate."""
    seconds = size.warm_up_seconds + size.seconds
    all_orders = counting.has_counted(history.totals.orders + rate * seconds)
    watch = asyncio.create_task(job.batches(all_orders, seconds + END_SECONDS_MAX))
    try:
        await publish(client, history, rate, size.warm_up_seconds)
        begin, began_at = await servers.ends(context, ORDERS_TOPIC), time.time()
        used = process_tree.cpu_seconds(job.running.pid)
        await publish(client, history, rate, size.seconds)
        batches = await watch
    finally:
        watch.cancel()
    used = batches[-1].cpu_seconds - used
    samples[at_rate(USED, rate)].append(used / (batches[-1].seen_at - began_at))
    found = percentiles(await milliseconds_to_row(context, begin, batches))
    for rank in RANKS:
        samples[at_rate(f"{APPENDED}, {rank}", rate)].append(found[rank])


async def create_all_topics(bootstrap_servers: str) -> None:
    """As declared, but orders.v1 has the broker's append time."""
    configs = DOMAIN_TOPIC | dict(servers.LOG_APPEND_TIME)
    partitions = topics.TOPICS[ORDERS_TOPIC].partitions
    orders = NewTopic(ORDERS_TOPIC, partitions, 1, topic_configs=configs)
    await create_topics(bootstrap_servers, orders)
    await topics.create(Brokers(bootstrap_servers))


async def publish(client: AIOKafkaProducer, history: ShopHistory, rate: int, seconds: int) -> None:
    """So many orders per second, each placed when it is sent. Raises Failure if it falls behind."""
    began_at, sent = time.monotonic(), 0
    while sent < rate * seconds:
        due = min(int((time.monotonic() - began_at) * rate), rate * seconds)
        if due - sent > rate:
            raise Failure(f"{rate} orders per second are more than this machine can publish")
        if due > sent:
            await kafka.publish(client, history.now(due - sent))
            sent = due
        await asyncio.sleep(TICK_SECONDS)


async def milliseconds_to_row(
    context: StackContext, begin: Mapping[TopicPartition, int], batches: Sequence[SeenBatch]
) -> list[float]:
    """Of each order since `begin`, from the broker's time to when its batch was seen."""
    ends = await servers.ends(context, ORDERS_TOPIC)
    appended: dict[TopicPartition, list[float]] = {each: [] for each in begin}
    async with (
        servers.reader(context, begin) as consumer,
        servers.bounded(READ_SECONDS_MAX, "to read the topic"),
    ):
        while any(begin[each] + len(times) < ends[each] for each, times in appended.items()):
            for partition, records in (await consumer.getmany(timeout_ms=MILLISECONDS)).items():
                appended[partition] += [record.timestamp / MILLISECONDS for record in records]
    return list(waits(begin, appended, batches))


def waits(
    begin: Mapping[TopicPartition, int],
    appended: Mapping[TopicPartition, list[float]],
    batches: Sequence[SeenBatch],
) -> Iterator[float]:
    for batch in batches:
        read = json.loads(batch.offsets).get(ORDERS_TOPIC, {})
        for partition, times in appended.items():
            first, end = (each - begin[partition] for each in read[str(partition.partition)])
            for time_ in times[max(first, 0) : max(end, 0)]:
                yield (batch.seen_at - time_) * MILLISECONDS


PART = Part(
    name="latency",
    summary=__doc__ or "",
    spec=StackSpec(processes=(POSTGRES, KAFKA)),
    measure=measure,
)
