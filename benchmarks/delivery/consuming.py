"""consumer: effects per second of a worker, compared with the least work of any consumer."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from uuid import UUID

import asyncpg
from aiokafka import AIOKafkaConsumer, ConsumerRecord
from pydantic import PostgresDsn

import users_svc.bootstrap
from benchmarks import rows, servers
from benchmarks.delivery.sizes import Size
from benchmarks.goals import ratio_at_least
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from benchmarks.servers import Running
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import StackContext, StackSpec
from orders_svc.order import contract
from orders_svc.order.events import OrderLine, OrderPlaced
from shared.eventsourcing.event_store import EventStore, get_partition
from shared.messaging import kafka, messages, topics, wire
from shared.messaging.messages import Metadata
from shared.messaging.wire import OutgoingRecord
from shared.runtime import telemetry
from shared.runtime.brokers import Brokers
from shared.runtime.identifiers import new_id
from shared.runtime.progress import tell_in_place
from users_svc.events import UserEvent, UserRegistered
from users_svc.settings import UsersSettings

TOPIC = contract.TOPIC
ORDERS_PER_USER = 10
PARKED_STREAMS = 100
PRICE = Decimal("1.00")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
APPENDS_AT_A_TIME = 50

POLL_MILLISECONDS = 200
LOOK_EVERY_SECONDS = 0.05
WORK_SECONDS_MAX = 600
WORK = "to consume the backlog"

BARE = "bare getmany loop"
UPSERT = "getmany loop, one upsert per message"
WORKER = "worker, one decision and append per message"
UNOBSERVED = "worker without metrics and logs"
TRACED_EVERY = 100
TRACED = f"worker, one of {TRACED_EVERY} messages in a recorded trace"
PARKED = f"worker, beside {PARKED_STREAMS} parked streams"

CREATE_EFFECTS = "CREATE TABLE effects (key text PRIMARY KEY, count integer NOT NULL)"
UPSERT_EFFECT = """
    INSERT INTO effects (key, count) VALUES ($1, 1)
    ON CONFLICT (key) DO UPDATE SET count = effects.count + 1
"""
LAST_POSITION = "SELECT coalesce(max(position), 0) FROM events"
EVENTS_SINCE = "SELECT count(*) FROM events WHERE position > $1"
COUNT_PARKED = "SELECT count(*) FROM parked_streams"
FORGET_PARKED = "TRUNCATE parked_messages, parked_streams"


async def measure(context: StackContext, size: Size) -> list[Series]:
    samples = Samples(list)
    await topics.create(Brokers(context.address("kafka")))
    async with (
        servers.database(context, "shared", "users_svc") as dsn,
        users_svc.bootstrap.open_resources(
            UsersSettings(database_url=PostgresDsn(dsn)), "bench"
        ) as resources,
        servers.connected(dsn) as connection,
        servers.span_sink(context) as collector,
    ):
        await connection.execute(CREATE_EFFECTS)
        bench = Bench(context, dsn, connection, resources.users, collector)
        for number in range(1, size.rounds + 1):
            tell_in_place(f"consumer: round {number} of {size.rounds}")
            await bench.measure_round(size.messages, samples, is_reversed=number % 2 == 0)
    bare = series(samples, BARE, "1/s")
    upsert = series(samples, UPSERT, "1/s", limit=bare)
    worker = series(samples, WORKER, "1/s", limit=upsert)
    parked = series(samples, PARKED, "1/s", limit=worker, goal=ratio_at_least(0.95))
    unobserved = series(samples, UNOBSERVED, "1/s", limit=upsert)
    measured = replace(
        worker, name="worker with metrics and logs", limit=unobserved, goal=ratio_at_least(0.95)
    )
    traced = series(samples, TRACED, "1/s", limit=worker, goal=ratio_at_least(0.9))
    return [bare, upsert, worker, parked, unobserved, measured, traced]


@dataclass(frozen=True, slots=True)
class Bench:
    """A database and a topic that all rounds share; each round adds to both."""

    context: StackContext
    dsn: str
    connection: asyncpg.Connection
    users: EventStore[UserEvent]
    collector: str
    """The address of one that discards spans."""

    async def measure_round(self, count: int, samples: Samples, *, is_reversed: bool) -> None:
        """The workers take turns to be first, so that caches and growth favour none."""
        begin = await servers.ends(self.context, TOPIC)
        workers: list[tuple[str, Callable[[int], Awaitable[float]]]] = [
            (WORKER, self.measure_alone),
            (PARKED, self.measure_with_parked),
            (UNOBSERVED, partial(self.measure_alone, more=servers.UNOBSERVED)),
            (TRACED, self.measure_traced),
        ]
        for name, measure_rate in reversed(workers) if is_reversed else workers:
            await self.connection.execute(FORGET_PARKED)
            samples[name].append(await measure_rate(count))
        async with servers.reader(self.context, begin) as consumer:
            samples[BARE].append(await measure_read_rate(consumer, count, do_nothing))
        async with servers.reader(self.context, begin) as consumer:
            samples[UPSERT].append(await measure_read_rate(consumer, count, self.upsert))

    async def measure_alone(
        self, count: int, more: Mapping[str, str] = MappingProxyType({})
    ) -> float:
        """Events per second, with `more` in the environment of the worker."""
        await self.publish(await self.create_orders(count))
        return await self.measure_worker(count, more)

    async def measure_traced(self, count: int) -> float:
        """With traces, of which the requests have recorded few."""
        orders = [
            add_trace(record, is_recorded=number % TRACED_EVERY == 0)
            for number, record in enumerate(await self.create_orders(count))
        ]
        await self.publish(orders)
        return await self.measure_worker(count, {"OTEL_EXPORTER_OTLP_ENDPOINT": self.collector})

    async def measure_with_parked(self, count: int) -> float:
        """With later messages of the parked streams spread evenly among the orders."""
        waiting = [new_id() for _ in range(PARKED_STREAMS)]
        await self.park(waiting)
        orders = await self.create_orders(count)
        await self.publish(
            spread(orders, [create_later_record(stream_id) for stream_id in waiting])
        )
        return await self.measure_worker(count)

    async def create_orders(self, count: int) -> list[OutgoingRecord]:
        """Orders of users who have registered, and none of them two in a row."""
        user_ids = [new_id() for _ in range(max(1, count // ORDERS_PER_USER))]
        for begin in range(0, len(user_ids), APPENDS_AT_A_TIME):
            page = user_ids[begin : begin + APPENDS_AT_A_TIME]
            await asyncio.gather(*(self.register(user_id) for user_id in page))
        return [
            create_order_record(user_ids[number % len(user_ids)], new_id())
            for number in range(count)
        ]

    async def register(self, user_id: UUID) -> None:
        registered = UserRegistered(
            user_id=user_id,
            personal_data="sealed",
            address="DE-BE",
            gender="female",
            credit_limit=PRICE * ORDERS_PER_USER * 2,
            effective_at=NOON,
        )
        metadata = Metadata(correlation_id=new_id(), causation_id=new_id())
        await self.users.append(user_id, 0, [registered], metadata=metadata)

    async def publish(self, records: Sequence[OutgoingRecord]) -> None:
        client = kafka.create_producer(Brokers(self.context.address("kafka")), "bench")
        await client.start()
        try:
            await kafka.publish(client, records)
        finally:
            await client.stop()

    async def upsert(self, record: ConsumerRecord) -> None:
        await self.connection.execute(UPSERT_EFFECT, record.key.decode())

    async def park(self, streams: Sequence[UUID]) -> None:
        """Let a worker park streams whose first message is unreadable."""
        await self.publish([create_unreadable_record(stream_id) for stream_id in streams])
        async with self.start_worker() as worker, servers.bounded(WORK_SECONDS_MAX, WORK):
            while await self.connection.fetchval(COUNT_PARKED) < len(streams):
                worker.demand_alive()
                await asyncio.sleep(LOOK_EVERY_SECONDS)
            await worker.stop()

    async def measure_worker(
        self, count: int, more: Mapping[str, str] = MappingProxyType({})
    ) -> float:
        """Events per second, from the last poll that found none to the first that found all."""
        before = await self.connection.fetchval(LAST_POSITION)
        async with self.start_worker(more) as worker, servers.bounded(WORK_SECONDS_MAX, WORK):
            began_at = time.perf_counter()
            while (done := await self.connection.fetchval(EVENTS_SINCE, before)) < count:
                worker.demand_alive()
                if not done:
                    began_at = time.perf_counter()
                await asyncio.sleep(LOOK_EVERY_SECONDS)
            rate = count / (time.perf_counter() - began_at)
            await worker.stop()
            return rate

    def start_worker(
        self, more: Mapping[str, str] = MappingProxyType({})
    ) -> AbstractAsyncContextManager[Running]:
        environment = servers.settings_of_process(self.context, self.dsn)
        return servers.python(self.context, ["-m", "users_svc", "worker"], {**environment, **more})


async def do_nothing(record: ConsumerRecord) -> None:
    """The bare loop does nothing with a record."""


async def measure_read_rate(
    consumer: AIOKafkaConsumer, count: int, take: Callable[[ConsumerRecord], Awaitable[None]]
) -> float:
    """Records per second."""
    done, began_at = 0, time.perf_counter()
    async with servers.bounded(WORK_SECONDS_MAX, WORK):
        while done < count:
            for records in (await consumer.getmany(timeout_ms=POLL_MILLISECONDS)).values():
                for record in records:
                    await take(record)
                done += len(records)
    return done / (time.perf_counter() - began_at)


def create_order_record(user_id: UUID, order_id: UUID) -> OutgoingRecord:
    line = OrderLine(item_id=new_id(), quantity=1, unit_price=PRICE)
    placed = OrderPlaced(
        order_id=order_id, user_id=user_id, lines=(line,), amount=PRICE, ordered_at=NOON
    )
    public = contract.publish(placed)
    return create_record(order_id, public.value, key=public.key)


def create_unreadable_record(stream_id: UUID) -> OutgoingRecord:
    return create_record(stream_id, b"{}", key=str(stream_id))


def create_later_record(stream_id: UUID) -> OutgoingRecord:
    """A message that has to wait, because the first of its stream is unreadable."""
    return create_record(stream_id, b"{}", key=str(stream_id), version=2)


def create_record(stream_id: UUID, value: bytes, *, key: str, version: int = 1) -> OutgoingRecord:
    headers = rows.HEADERS | {
        messages.ID: str(new_id()),
        messages.SUBJECT: key,
        messages.STREAM_ID: str(stream_id),
        messages.STREAM_VERSION: str(version),
        messages.PREVIOUS_VERSION: str(version - 1),
    }
    return OutgoingRecord(
        topic=TOPIC,
        partition=get_partition(TOPIC, key),
        key=key.encode(),
        value=value,
        headers=wire.pack(wire.to_headers(headers)),
        milliseconds=time.time_ns() // 1_000_000,
    )


def add_trace(record: OutgoingRecord, *, is_recorded: bool) -> OutgoingRecord:
    trace, span = os.urandom(16).hex(), os.urandom(8).hex()
    traceparent = f"00-{trace}-{span}-{'03' if is_recorded else '02'}"
    headers = [*wire.unpack(record.headers), (telemetry.TRACEPARENT, traceparent.encode())]
    return record._replace(headers=wire.pack(headers))


def spread(many: Sequence[OutgoingRecord], few: Sequence[OutgoingRecord]) -> list[OutgoingRecord]:
    """The few evenly among the many."""
    step = max(1, len(many) // len(few))
    mixed: list[OutgoingRecord] = []
    for number, each in enumerate(few):
        mixed += [each, *many[number * step : (number + 1) * step]]
    return mixed + list(many[len(few) * step :])


PART = Part(
    name="consumer",
    summary=__doc__ or "",
    spec=StackSpec(processes=(POSTGRES, KAFKA)),
    measure=measure,
)
