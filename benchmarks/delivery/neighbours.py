"""neighbours: orders of many users until they are confirmed, next to users who burden the stack."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from uuid import UUID

from benchmarks import servers
from benchmarks.delivery import confirming, http_client, shop
from benchmarks.delivery.confirming import RANKS, RATE, WITHOUT_JAEGER, Step
from benchmarks.delivery.http_client import Connection, UnexpectedStatus
from benchmarks.delivery.shop import Shop
from benchmarks.delivery.sizes import Size
from benchmarks.goals import ratio_at_most
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from local_stack.postgres import SUPERUSER, dsn
from local_stack.stack_spec import StackContext
from shared.runtime.progress import tell_in_place

USERS = 50
PLACES = ("DE-HH", "DE-BE")
ORDERS_PER_SECOND = 4
"""Of each of the three neighbours; one of them also moves as often."""
EXPECTED = ("overloaded", "too-many-moves", "same-address")
"""Codes with which a neighbour may be refused."""
GOAL = ratio_at_most(2)

ALONE = "alone"
NEXT_TO_THEM = "next to one who moved very often, one of very many refusals, and one who is parked"

REFUSALS = """
    INSERT INTO events (stream_id, version, event_id, type, schema_version, data, metadata,
                        recorded_at)
    SELECT $1::uuid, version, gen_random_uuid(), 'credit-refused', 1,
           json_build_object('user_id', $1::uuid, 'order_id', gen_random_uuid(), 'amount', '1.00',
                             'reason', 'insufficient-credit'),
           json_build_object('correlation_id', gen_random_uuid(), 'causation_id',
                             gen_random_uuid(), 'actor', 'bench'),
           now()
    FROM generate_series(2, $2::integer + 1) AS version
"""
"""Without outbox rows: the other services need not read them, and the next one follows on what was
published last."""
ADD_VERSIONS = "UPDATE streams SET version = version + $2 WHERE stream_id = $1"
PARK = """
    INSERT INTO parked_streams (consumer, topic, stream_id, reason, parked_at)
    VALUES ('orders-worker', 'users.v1', $1, 'a benchmark', now())
"""


async def measure(context: StackContext, size: Size) -> list[Series]:
    samples = Samples(list)
    await confirming.open_shop(context, USERS)
    tell_in_place("neighbours: warming up")
    await confirming.order(context, RATE, size.order_warm_up_seconds)
    for number in range(1, size.rounds + 1):
        tell_in_place(f"neighbours: round {number} of {size.rounds}, without them")
        record(await confirming.order(context, RATE, size.order_seconds), ALONE, samples)
    tell_in_place("neighbours: making their past")
    neighbours = await make_neighbours(context, size)
    async with neighbours.busy():
        await confirming.order(context, RATE, size.order_warm_up_seconds)
        for number in range(1, size.rounds + 1):
            tell_in_place(f"neighbours: round {number} of {size.rounds}, next to them")
            step = await confirming.order(context, RATE, size.order_seconds)
            record(step, NEXT_TO_THEM, samples)
    return as_series(samples)


def record(step: Step, name: str, samples: Samples) -> None:
    """Raises Failure when an order was refused, or not confirmed."""
    taken = confirming.compute_confirmed(step)
    for rank in RANKS:
        samples[f"{name}, {rank}"].append(taken[rank])


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Users who place orders all the time, by what is wrong with them."""

    token: str
    orders_api: str
    users_api: str
    items: tuple[str, ...]
    moving: str
    refused: str
    parked: str

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        """They place orders and move inside. Raises UnexpectedStatus: a request failed."""
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(self._place(each))
                for each in (self.moving, self.refused, self.parked)
            ]
            running.append(tasks.create_task(self._move()))
            yield
            for each in running:
                each.cancel()

    async def _place(self, user_id: str) -> None:
        own = Shop(token=self.token, users=[user_id], items=self.items)
        async with http_client.connect(self.orders_api) as connection:
            for number in count():
                await ask(connection, own.placement(number), 201)
                await asyncio.sleep(1 / ORDERS_PER_SECOND)

    async def _move(self) -> None:
        async with http_client.connect(self.users_api) as connection:
            for number in count():
                await ask(connection, move(self.token, self.moving, number), 200)
                await asyncio.sleep(1 / ORDERS_PER_SECOND)


async def make_neighbours(context: StackContext, size: Size) -> Neighbours:
    """With their past: it takes about a minute for ten thousand moves."""
    token, users_api = shop.create_token(context.folder), context.address("users-api")
    [moving, parked] = await shop.register_users(users_api, token, 2)
    [refused] = await shop.register_users(users_api, token, 1, credit_limit="0.00")
    async with http_client.connect(users_api) as connection:
        for number in range(size.hot_moves):
            await ask(connection, move(token, moving, number), 200)
    async with servers.connected(dsn(context, SUPERUSER, "users")) as connected:
        await connected.execute(REFUSALS, UUID(refused), size.hot_refusals, timeout=None)
        await connected.execute(ADD_VERSIONS, UUID(refused), size.hot_refusals)
    async with servers.connected(dsn(context, SUPERUSER, "orders")) as connected:
        await connected.execute(PARK, UUID(parked))
    return Neighbours(
        token=token,
        orders_api=context.address("orders-api"),
        users_api=users_api,
        items=tuple(Shop.load(context.folder / shop.FILE).items),
        moving=moving,
        refused=refused,
        parked=parked,
    )


def move(token: str, user_id: str, number: int) -> bytes:
    body = json.dumps({"address": PLACES[number % len(PLACES)]}).encode()
    return http_client.create_request(
        "POST", f"/v1/users/{user_id}/moves", shop.authorize(token), body
    )


async def ask(connection: Connection, request: bytes, status: int) -> None:
    """Raises UnexpectedStatus, unless the request was refused as EXPECTED."""
    try:
        await connection.ask(request, status=status)
    except UnexpectedStatus as error:
        if json.loads(error.reply.body).get("code") not in EXPECTED:
            raise


def as_series(samples: Samples) -> list[Series]:
    found = []
    for rank in RANKS:
        alone = series(samples, f"{ALONE}, {rank}", "ms")
        next_to_them = f"{NEXT_TO_THEM}, {rank}"
        found += [alone, series(samples, next_to_them, "ms", limit=alone, goal=GOAL)]
    return found


PART = Part(name="neighbours", summary=__doc__ or "", spec=WITHOUT_JAEGER, measure=measure)
