"""fold: how long loading a stream takes by its length, compared with reading one row by its key."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from statistics import median
from typing import TypeVar
from uuid import UUID

import asyncpg
from pydantic import PostgresDsn

import orders_svc.bootstrap
import users_svc.bootstrap
from benchmarks import rows, servers
from benchmarks.delivery.sizes import Size
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import StackContext, StackSpec
from orders_svc.order.events import (
    OrderCancelled,
    OrderConfirmed,
    OrderEvent,
    OrderLine,
    OrderPlaced,
)
from orders_svc.order.order import ORDER
from orders_svc.settings import OrdersSettings
from shared.eventsourcing.event_store import EventStore
from shared.eventsourcing.handler import load
from shared.messaging.messages import Metadata
from shared.runtime.identifiers import new_id
from shared.runtime.progress import tell_in_place
from users_svc.events import CreditReleased, CreditReserved, UserEvent, UserRegistered
from users_svc.settings import UsersSettings
from users_svc.user import USER

E = TypeVar("E")

EVENTS_PER_APPEND = 1_000
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PRICE = Decimal("10.00")

ONE_ROW = "one row by its key: what a snapshot costs at the least"
CREATE_STATES = "CREATE TABLE states (stream_id uuid PRIMARY KEY, state json NOT NULL)"
INSERT_STATE = "INSERT INTO states (stream_id, state) VALUES ($1, $2)"
READ_STATE = "SELECT state FROM states WHERE stream_id = $1"

Load = Callable[[], Awaitable[object]]


async def measure(context: StackContext, size: Size) -> list[Series]:
    async with (
        servers.database(context, "shared", "users_svc") as users_dsn,
        servers.database(context, "shared", "orders_svc") as orders_dsn,
        users_svc.bootstrap.open_resources(
            UsersSettings(database_url=PostgresDsn(users_dsn)), "bench"
        ) as users,
        orders_svc.bootstrap.open_resources(
            OrdersSettings(database_url=PostgresDsn(orders_dsn)), "bench"
        ) as orders,
    ):
        loads = {
            ONE_ROW: await prepare_state(users.pool),
            **await prepare_order(orders.orders),
            **await prepare_users(users.users, size.lengths),
        }
        return await measure_loads(loads, size)


async def measure_loads(loads: Mapping[str, Load], size: Size) -> list[Series]:
    samples = Samples(list)
    for number in range(1, size.rounds + 1):
        tell_in_place(f"fold: round {number} of {size.rounds}")
        for name, one in loads.items():
            samples[name].append(await measure_milliseconds(one, size.loads))
    limit = series(samples, ONE_ROW, "ms")
    others = [series(samples, name, "ms", limit=limit) for name in loads if name != ONE_ROW]
    return [limit, *others]


async def measure_milliseconds(one: Load, times: int) -> float:
    await one()
    taken = []
    for _ in range(times):
        began_at = time.perf_counter()
        await one()
        taken.append(time.perf_counter() - began_at)
    return median(taken) * 1000


async def prepare_state(pool: asyncpg.Pool) -> Load:
    key = new_id()
    await pool.execute(CREATE_STATES)
    await pool.execute(INSERT_STATE, key, rows.VALUE)
    return partial(pool.fetchval, READ_STATE, key)


async def prepare_users(store: EventStore[UserEvent], lengths: Sequence[int]) -> dict[str, Load]:
    """Users with that many events; their orders are all closed, or all open.

    Without their cached states, and with the one of the last.
    """
    loads: dict[str, Load] = {}
    for length in lengths:
        for what, is_open in (("closed", False), ("open", True)):
            user_id = new_id()
            await append_all(store, user_id, create_user_events(user_id, length, is_open=is_open))
            name = f"user of {length:,} events, all orders {what}"
            loads[name] = partial(load_whole, store, user_id)
    loads[f"{name}, by its cached state"] = partial(load, store, USER, user_id)
    return loads


async def load_whole(store: EventStore[UserEvent], user_id: UUID) -> object:
    store.states.forget(user_id)
    return await load(store, USER, user_id)


def create_user_events(user_id: UUID, length: int, *, is_open: bool) -> list[UserEvent]:
    events: list[UserEvent] = [
        UserRegistered(
            user_id=user_id,
            personal_data="sealed",
            address="DE-BE",
            gender="female",
            credit_limit=PRICE * length,
            effective_at=NOON,
        )
    ]
    order_id = new_id()
    while len(events) < length:
        if is_open or len(events) % 2:
            order_id = new_id()
            events.append(CreditReserved(user_id=user_id, order_id=order_id, amount=PRICE))
        else:
            events.append(CreditReleased(user_id=user_id, order_id=order_id, amount=PRICE))
    return events


async def prepare_order(store: EventStore[OrderEvent]) -> dict[str, Load]:
    """An order at its longest; no command adds a fourth event."""
    order_id, user_id = new_id(), new_id()
    await append_all(store, order_id, create_order_events(order_id, user_id))
    return {"order of 3 events": partial(load, store, ORDER, order_id)}


def create_order_events(order_id: UUID, user_id: UUID) -> list[OrderEvent]:
    lines = (OrderLine(item_id=new_id(), quantity=1, unit_price=PRICE),)
    return [
        OrderPlaced(order_id=order_id, user_id=user_id, lines=lines, amount=PRICE, ordered_at=NOON),
        OrderConfirmed(
            order_id=order_id, user_id=user_id, lines=lines, amount=PRICE, ordered_at=NOON
        ),
        OrderCancelled(
            order_id=order_id,
            user_id=user_id,
            lines=lines,
            amount=PRICE,
            ordered_at=NOON,
            was_confirmed=True,
            reason="changed-my-mind",
        ),
    ]


async def append_all(store: EventStore[E], stream_id: UUID, events: Sequence[E]) -> None:
    metadata = Metadata(correlation_id=new_id(), causation_id=new_id())
    for begin in range(0, len(events), EVENTS_PER_APPEND):
        page = events[begin : begin + EVENTS_PER_APPEND]
        await store.append(stream_id, begin, page, metadata=metadata)


PART = Part(
    name="fold",
    summary=__doc__ or "",
    spec=StackSpec(processes=(POSTGRES,)),
    measure=measure,
)
