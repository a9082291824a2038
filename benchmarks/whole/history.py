"""Users who have bought before: a worker's state of them, and its folds, have a realistic size."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from uuid import UUID

import asyncpg
from opentelemetry.trace import INVALID_SPAN
from pydantic import PostgresDsn

import orders_svc.bootstrap
from benchmarks import servers
from benchmarks.delivery.shop import LINES, PRICE, Shop
from fetching.errors import Failure
from local_stack import postgres
from local_stack.hometown import relay_address
from local_stack.stack_spec import StackContext
from orders_svc.order.events import OrderEvent, OrderLine, OrderPlaced
from orders_svc.settings import OrdersSettings
from shared.eventsourcing.event_store import EventStore
from shared.eventsourcing.locked_streams import Append, LockedStreams
from shared.messaging.messages import Metadata
from shared.runtime.declarations import load_declarations
from shared.runtime.identifiers import new_id
from shared.runtime.progress import tell_in_place

ORDERED_AT = datetime(2016, 11, 11, 12, tzinfo=UTC)
"""Before all orders of the mixed load, which need hours without others."""
PAGE_ORDERS = 500
PAGES_UNDECIDED_MAX = 4
"""Far fewer than are decided on within the order timeout."""
LOOK_EVERY_SECONDS = 0.05
PAGE_SECONDS_MAX = 30

UNDECIDED = "SELECT count(*) FROM streams WHERE stream_id = ANY($1) AND version = 1"
CONFIRMED = "SELECT count(*) FROM events WHERE type = 'order-confirmed'"


async def write(context: StackContext, shop: Shop, events_per_user: int) -> None:
    """Let each user place orders until their stream has so many events.

    The orders are appended to the event store by the page, without requests; the workers
    decide on them as on any other.

    Raises:
        Failure: an order was not confirmed, or not in time.
    """
    orders = (events_per_user - 1) * len(shop.users)
    service = load_declarations().service("orders")
    settings = OrdersSettings(
        database_url=PostgresDsn(postgres.dsn(context, "orders")),
        relay_address=relay_address(service, context)["RELAY_ADDRESS"],
    )
    async with orders_svc.bootstrap.open_resources(settings, "bench") as resources:
        pages: list[Sequence[UUID]] = []
        placements = create_orders(shop, orders)
        while page := list(islice(placements, PAGE_ORDERS)):
            tell_in_place(f"writing the past: {len(pages) * PAGE_ORDERS} of {orders} orders")
            await place(resources.pool, resources.orders, page)
            resources.relay_notifier.notify()
            pages.append([each.order_id for each in page])
            for decided in pages[-PAGES_UNDECIDED_MAX - 1 : -PAGES_UNDECIDED_MAX]:
                await wait_until_decided(resources.pool, decided)
        for decided in pages[-PAGES_UNDECIDED_MAX:]:
            await wait_until_decided(resources.pool, decided)
        confirmed = await resources.pool.fetchval(CONFIRMED)
    if confirmed != orders:
        raise Failure(f"{orders - confirmed} of {orders} orders of the past were not confirmed")


def create_orders(shop: Shop, orders: int) -> Iterator[OrderPlaced]:
    """Users and items take turns."""
    users, items = [UUID(each) for each in shop.users], [UUID(each) for each in shop.items]
    price = Decimal(PRICE)
    for number in range(orders):
        yield OrderPlaced(
            order_id=new_id(),
            user_id=users[number % len(users)],
            lines=tuple(
                OrderLine(item_id=items[(number + line) % len(items)], quantity=1, unit_price=price)
                for line in range(LINES)
            ),
            amount=price * LINES,
            ordered_at=ORDERED_AT,
        )


async def place(
    pool: asyncpg.Pool, store: EventStore[OrderEvent], page: Sequence[OrderPlaced]
) -> None:
    """Record the orders in one transaction."""
    metadata = Metadata(correlation_id=new_id(), causation_id=new_id())
    appends: list[Append[OrderEvent]] = [
        Append(
            stream_id=each.order_id,
            expected_version=0,
            events=[each],
            metadata=metadata,
            span=INVALID_SPAN,
        )
        for each in page
    ]
    async with pool.acquire() as connection, connection.transaction():
        streams = await LockedStreams.lock(store, connection, [each.order_id for each in page])
        await streams.append(appends)


async def wait_until_decided(pool: asyncpg.Pool, order_ids: Sequence[UUID]) -> None:
    async with servers.bounded(PAGE_SECONDS_MAX, "to decide on orders of the past"):
        while await pool.fetchval(UNDECIDED, order_ids):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_EVERY_SECONDS)
