"""drain: how fast a relay publishes a full outbox, compared with sending the same bytes."""

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.structs import RecordMetadata

from benchmarks import rows, servers
from benchmarks.delivery.sizes import Size
from benchmarks.goals import at_most, ratio_at_least
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from benchmarks.servers import Running
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import StackContext, StackSpec
from shared.messaging import kafka, wire
from shared.messaging.wire import OutgoingRecord, RecordBatch
from shared.runtime.brokers import Brokers
from shared.runtime.progress import tell_in_place

LIMIT = "bare send_batch, headers packed beforehand"
UNPACKED = "bare send_batch, batches built by aiokafka"
OURS = "relay"
TRACED = "relay, each row in a sampled trace"
HORIZON = "relay below the oldest open transaction, send_batch"
SKIP_LOCKED = "SKIP LOCKED relay, send_and_wait per row"
MEMORY = "relay, largest resident memory"
CPU = "relay, CPU time per million rows"

Begin = Callable[[str, int, int], RecordBatch | BatchBuilder]
"""A batch of a topic and partition, with so many bytes at most."""
Append = Callable[[Any, OutgoingRecord], bool]
"""False when the batch is full."""

PEERS = Path(__file__).parents[2] / "verification" / "stress" / "relay_script.py"
PREPARED_RECORDS = 10_000
"""They are sent repeatedly."""
BATCHES_IN_FLIGHT_MAX = 8
OFFSETS_EVERY_SECONDS = 0.02
DRAIN_SECONDS_MAX = 600
MEBIBYTE = 1 << 20
MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """From the first record in the topic to the last."""

    rows_per_second: float
    resident_bytes_max: int
    cpu_seconds_per_million: float


async def measure(context: StackContext, size: Size) -> list[Series]:
    samples = Samples(list)
    for number in range(1, size.rounds + 1):
        tell_in_place(f"drain: round {number} of {size.rounds}")
        samples[LIMIT].append(
            await measure_send_rate(context, size.drain_rows, RecordBatch, RecordBatch.append)
        )
        samples[UNPACKED].append(
            await measure_send_rate(
                context, size.drain_rows, create_aiokafka_batch, append_unpacked
            )
        )
        drain = await measure_drain(context, start_ours, size.drain_rows)
        samples[OURS].append(drain.rows_per_second)
        samples[MEMORY].append(drain.resident_bytes_max / MEBIBYTE)
        samples[CPU].append(drain.cpu_seconds_per_million)
        drain = await measure_drain(
            context, start_ours, size.drain_rows, traceparent=rows.TRACEPARENT
        )
        samples[TRACED].append(drain.rows_per_second)
        drain = await measure_drain(context, start_horizon, size.drain_rows)
        samples[HORIZON].append(drain.rows_per_second)
        drain = await measure_drain(context, start_skip_locked, size.peer_rows)
        samples[SKIP_LOCKED].append(drain.rows_per_second)
    limit = series(samples, LIMIT, "1/s")
    peer = series(samples, SKIP_LOCKED, "1/s")
    return [
        limit,
        series(samples, UNPACKED, "1/s", limit=limit),
        series(samples, OURS, "1/s", limit=limit, goal=ratio_at_least(0.6)),
        series(samples, TRACED, "1/s", limit=limit),
        series(samples, MEMORY, "MiB", goal=at_most(100)),
        series(samples, CPU, "s"),
        series(samples, HORIZON, "1/s", limit=limit),
        peer,
        Series(
            name="relay beside SKIP LOCKED",
            unit="1/s",
            rounds=tuple(samples[OURS]),
            limit=peer,
            goal=ratio_at_least(5),
        ),
    ]


async def measure_send_rate(
    context: StackContext, count: int, begin: Begin, append: Append
) -> float:
    """Records per second of a producer with the relay's settings, and nothing else to do."""
    async with servers.topic(context) as topic:
        client = kafka.create_producer(Brokers(context.address("kafka")), "bench")
        await client.start()
        try:
            await client.partitions_for(topic)
            prepared = [create_record(topic, number) for number in range(PREPARED_RECORDS)]
            records = itertools.islice(itertools.cycle(prepared), count)
            began_at = time.perf_counter()
            await send(client, topic, records, begin, append)
            return count / (time.perf_counter() - began_at)
        finally:
            await client.stop()


def create_record(topic: str, number: int) -> OutgoingRecord:
    return OutgoingRecord(
        topic=topic,
        partition=number % servers.PARTITIONS,
        key=str(uuid4()).encode(),
        value=rows.VALUE.encode(),
        headers=wire.pack(rows.RECORD_HEADERS),
        milliseconds=time.time_ns() // 1_000_000,
    )


def create_aiokafka_batch(topic: str, partition: int, bytes_max: int) -> BatchBuilder:
    return BatchBuilder(bytes_max, compression_type=0)


def append_unpacked(batch: BatchBuilder, record: OutgoingRecord) -> bool:
    """The usual way, without packed headers; unpacking them is not measured."""
    return (
        batch.append(
            timestamp=record.milliseconds,
            key=record.key,
            value=record.value,
            headers=rows.RECORD_HEADERS,
        )
        is not None
    )


async def send(
    client: AIOKafkaProducer,
    topic: str,
    records: Iterator[OutgoingRecord],
    begin: Begin,
    append: Append,
) -> None:
    """Fill a batch per partition, send each that is full, wait until all are acknowledged."""

    async def send_batch(partition: int) -> None:
        batch = filling.pop(partition)
        in_flight.append(await client.send_batch(batch, topic, partition=partition))
        if len(in_flight) >= BATCHES_IN_FLIGHT_MAX:
            await in_flight.popleft()

    filling: dict[int, RecordBatch | BatchBuilder] = {}
    in_flight: deque[asyncio.Future[RecordMetadata]] = deque()
    for record in records:
        partition = record.partition
        if partition in filling and not append(filling[partition], record):
            await send_batch(partition)
        if partition not in filling:
            filling[partition] = begin(topic, partition, kafka.BATCH_BYTES_MAX)
            append(filling[partition], record)
    for partition in list(filling):
        await send_batch(partition)
    await asyncio.gather(*in_flight)


def start_ours(
    context: StackContext, environment: Mapping[str, str]
) -> AbstractAsyncContextManager[Running]:
    return servers.relay(context, environment)


def start_horizon(
    context: StackContext, environment: Mapping[str, str]
) -> AbstractAsyncContextManager[Running]:
    """A peer that loses nothing, but can reorder a stream and waits for the slowest writer."""
    return servers.python(context, [str(PEERS), "horizon", "bench-horizon"], environment)


def start_skip_locked(
    context: StackContext, environment: Mapping[str, str]
) -> AbstractAsyncContextManager[Running]:
    script = Path(__file__).with_name("skip_locked.py")
    return servers.python(context, [str(script)], environment)


Start = Callable[[StackContext, Mapping[str, str]], AbstractAsyncContextManager[Running]]


async def measure_drain(
    context: StackContext, start: Start, count: int, *, traceparent: str | None = None
) -> Drain:
    """Start a relay on an outbox with `count` rows, and watch the topic until it has them all."""
    async with (
        servers.database(context, "shared") as dsn,
        servers.topic(context) as topic,
        servers.connected(dsn) as connection,
        servers.tail(context, topic) as consumer,
    ):
        await rows.fill(connection, topic, count, traceparent=traceparent)
        await connection.execute("CHECKPOINT")
        async with (
            start(context, servers.settings_of_process(context, dsn)) as relay,
            servers.bounded(DRAIN_SECONDS_MAX, "to drain the outbox"),
        ):
            return await watch(relay, consumer, topic, count)


async def watch(relay: Running, consumer: AIOKafkaConsumer, topic: str, count: int) -> Drain:
    """From the last poll that found nothing to the first that found all rows.

    Raises:
        Failure: the relay ended.
    """
    resident, began_at, cpu_before = 0, time.perf_counter(), relay.cpu_seconds
    while True:
        relay.demand_alive()
        resident = max(resident, relay.resident_bytes)
        published = sum((await consumer.end_offsets(servers.partitions_of(topic))).values())
        now, cpu = time.perf_counter(), relay.cpu_seconds
        if not published:
            began_at, cpu_before = now, cpu
        if published >= count:
            return Drain(
                rows_per_second=count / (now - began_at),
                resident_bytes_max=resident,
                cpu_seconds_per_million=(cpu - cpu_before) / count * MILLION,
            )
        await asyncio.sleep(OFFSETS_EVERY_SECONDS)


PART = Part(
    name="drain",
    summary=__doc__ or "",
    spec=StackSpec(processes=(POSTGRES, KAFKA)),
    measure=measure,
)
