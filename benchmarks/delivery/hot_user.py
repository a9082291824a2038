"""hot: orders of many users until their credit is decided, next to a user with a very long past."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import asyncpg
from aiokafka import AIOKafkaProducer
from pydantic import PostgresDsn

import users_svc.bootstrap
from benchmarks import servers
from benchmarks.arrivals import percentiles
from benchmarks.delivery.consuming import NOON, create_order_record
from benchmarks.delivery.folding import append_all
from benchmarks.delivery.sizes import Size
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from benchmarks.servers import Running
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import StackContext, StackSpec
from shared.eventsourcing.event_store import EventStore
from shared.messaging import kafka, topics
from shared.runtime.brokers import Brokers
from shared.runtime.identifiers import new_id
from shared.runtime.progress import tell_in_place
from users_svc.events import (
    CreditRefused,
    CreditReleased,
    CreditReserved,
    UserEvent,
    UserMoved,
    UserRegistered,
)
from users_svc.settings import UsersSettings
from users_svc.user import INSUFFICIENT_CREDIT

USERS = 50
ORDERS_PER_SECOND = 50
"""Of these users together."""
COMPANION_ORDERS_PER_SECOND = 20
"""Of the user next to them, with or without a long past."""
CLOSED_SHARE = 10
"""One of so many orders of the hot user is closed."""
PRICE = Decimal("1.00")
PLACES = ("DE-BE", "DE-HH")
CREDIT_LIMIT = Decimal("1000000.00")
NO_CREDIT = Decimal("0.00")

TICK_SECONDS = 0.01
LOOK_EVERY_SECONDS = 0.005
DECIDED_SECONDS_MAX = 600
MILLISECONDS = 1_000
RANKS = ("p50", "p99", "longest")

NEXT_TO_ANOTHER = "next to another user"
NEXT_TO_MANY_ORDERS = "next to a user with very many orders"
NEXT_TO_MANY_REFUSALS = "next to a user with very many refused orders"
NEXT_TO_MANY_MOVES = "next to a user who moved very often"
NEXT_TO_A_LONG_PAST = (NEXT_TO_MANY_ORDERS, NEXT_TO_MANY_REFUSALS, NEXT_TO_MANY_MOVES)

LAST_POSITION = "SELECT coalesce(max(position), 0) FROM events"
DECIDED = """
    SELECT position, data->>'order_id' AS order_id
    FROM events
    WHERE position > $1
    ORDER BY position
"""


async def measure(context: StackContext, size: Size) -> list[Series]:
    samples = Samples(list)
    brokers = Brokers(context.address("kafka"))
    await topics.create(brokers)
    async with (
        servers.database(context, "shared", "users_svc") as dsn,
        users_svc.bootstrap.open_resources(
            UsersSettings(database_url=PostgresDsn(dsn)), "bench"
        ) as resources,
        servers.connected(dsn) as connection,
    ):
        store = resources.users
        users = [await register(store) for _ in range(USERS)]
        companions = {
            NEXT_TO_ANOTHER: await register(store),
            NEXT_TO_MANY_ORDERS: await register(store, orders=size.hot_orders),
            NEXT_TO_MANY_REFUSALS: await register(store, NO_CREDIT, refusals=size.hot_refusals),
            NEXT_TO_MANY_MOVES: await register(store, moves=size.hot_moves),
        }
        client = kafka.create_producer(brokers, "bench")
        await client.start()
        environment = servers.settings_of_process(context, dsn)
        try:
            async with servers.python(
                context, ["-m", "users_svc", "worker"], environment
            ) as worker:
                await servers.wait_until_ready(worker, environment)
                bench = Bench(client, connection, worker)
                for number in range(1, size.rounds + 1):
                    for name, companion in companions.items():
                        tell_in_place(f"hot: round {number} of {size.rounds}, {name}")
                        await bench.order([(0.0, each) for each in (*users, companion)], set())
                        plan = schedule(users, companion, size.hot_seconds)
                        taken = percentiles(await bench.order(plan, set(users)))
                        for rank in RANKS:
                            samples[f"{name}, {rank}"].append(taken[rank])
                await worker.stop()
        finally:
            await client.stop()
    return as_series(samples)


async def register(
    store: EventStore[UserEvent],
    credit_limit: Decimal = CREDIT_LIMIT,
    *,
    orders: int = 0,
    refusals: int = 0,
    moves: int = 0,
) -> UUID:
    """A user with so many orders, refused orders and moves of the past."""
    user_id = new_id()
    events: list[UserEvent] = [
        UserRegistered(
            user_id=user_id,
            personal_data="sealed",
            address="DE-BE",
            gender="female",
            credit_limit=credit_limit,
            effective_at=NOON,
        )
    ]
    for number in range(orders):
        order_id = new_id()
        events.append(CreditReserved(user_id=user_id, order_id=order_id, amount=PRICE))
        if number % CLOSED_SHARE == 0:
            events.append(CreditReleased(user_id=user_id, order_id=order_id, amount=PRICE))
    events += [
        CreditRefused(user_id=user_id, order_id=new_id(), amount=PRICE, reason=INSUFFICIENT_CREDIT)
        for _ in range(refusals)
    ]
    events += [
        UserMoved(
            user_id=user_id,
            address=PLACES[number % len(PLACES)],
            gender="female",
            effective_at=NOON + timedelta(seconds=number),
        )
        for number in range(moves)
    ]
    await append_all(store, user_id, events)
    return user_id


Plan = Sequence[tuple[float, UUID]]
"""When an order is due, in seconds from now, and its user."""


def schedule(users: Sequence[UUID], companion: UUID, seconds: int) -> Plan:
    """Orders of all users at even intervals, in the order in which they are due."""
    of_users = [
        (number / ORDERS_PER_SECOND, users[number % len(users)])
        for number in range(seconds * ORDERS_PER_SECOND)
    ]
    of_companion = [
        (number / COMPANION_ORDERS_PER_SECOND, companion)
        for number in range(seconds * COMPANION_ORDERS_PER_SECOND)
    ]
    return sorted([*of_users, *of_companion])


@dataclass(frozen=True, slots=True)
class Bench:
    """A worker that runs all the time; each plan adds to its topic and to its database."""

    client: AIOKafkaProducer
    connection: asyncpg.Connection
    worker: Running

    async def order(self, plan: Plan, measured: set[UUID]) -> list[float]:
        """Milliseconds from when an order is due until its decision is committed.

        Of the orders of the `measured` users; all orders are waited for.
        """
        begin = await self.connection.fetchval(LAST_POSITION)
        due: dict[str, tuple[float, UUID]] = {}
        began_at = time.perf_counter()
        async with servers.bounded(DECIDED_SECONDS_MAX, "to decide on all orders"):
            sending = asyncio.create_task(self.send(plan, began_at, due))
            decided_at = await self.watch(begin, due, len(plan))
            await sending
        return [
            (at - due[order_id][0]) * MILLISECONDS
            for order_id, at in decided_at.items()
            if due[order_id][1] in measured
        ]

    async def send(self, plan: Plan, began_at: float, due: dict[str, tuple[float, UUID]]) -> None:
        """Send each order when it is due, late or not."""
        waiting = list(reversed(plan))
        while waiting:
            now, records = time.perf_counter() - began_at, []
            while waiting and waiting[-1][0] <= now:
                seconds, user_id = waiting.pop()
                order_id = new_id()
                due[str(order_id)] = (began_at + seconds, user_id)
                records.append(create_order_record(user_id, order_id))
            await kafka.publish(self.client, records)
            await asyncio.sleep(TICK_SECONDS)

    async def watch(
        self, position: int, due: dict[str, tuple[float, UUID]], count: int
    ) -> dict[str, float]:
        """When each of these orders, so many in all, was first seen to be decided."""
        seen: dict[str, float] = {}
        while len(seen) < count:
            self.worker.demand_alive()
            rows = await self.connection.fetch(DECIDED, position)
            now = time.perf_counter()
            for row in rows:
                position = row["position"]
                if row["order_id"] in due:
                    seen[row["order_id"]] = now
            await asyncio.sleep(LOOK_EVERY_SECONDS)
        return seen


def as_series(samples: Samples) -> list[Series]:
    found = []
    for rank in RANKS:
        without = series(samples, f"{NEXT_TO_ANOTHER}, {rank}", "ms")
        found.append(without)
        found += [
            series(samples, f"{name}, {rank}", "ms", limit=without) for name in NEXT_TO_A_LONG_PAST
        ]
    return found


PART = Part(
    name="hot",
    summary=__doc__ or "",
    spec=StackSpec(processes=(POSTGRES, KAFKA)),
    measure=measure,
)
