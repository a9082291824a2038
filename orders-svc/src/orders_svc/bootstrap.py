"""Builds all resources of a process from its settings; no other module does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

import orders_svc.item.contract
import orders_svc.item.events
import orders_svc.order.contract
import orders_svc.order.events
from orders_svc.item.events import ItemEvent
from orders_svc.item.item_cache import ItemCache
from orders_svc.order.admission import Admission
from orders_svc.order.events import OrderEvent
from orders_svc.settings import OrdersSettings
from shared.eventsourcing.event_store import EventStore
from shared.eventsourcing.stream_watch import StreamWatch
from shared.runtime import postgres
from shared.runtime.relay_notifier import RelayNotifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    pool: asyncpg.Pool
    relay_notifier: RelayNotifier
    items: EventStore[ItemEvent]
    item_cache: ItemCache
    orders: EventStore[OrderEvent]
    watch: StreamWatch[OrderEvent]
    admission: Admission


@asynccontextmanager
async def open_resources(settings: OrdersSettings, name: str) -> AsyncIterator[Resources]:
    """Open the resources of the process `name`; they are closed in reverse order."""
    async with postgres.open_pool(
        settings.database_dsn, name=name, connections_max=settings.database_connections_max
    ) as pool:
        relay_notifier = RelayNotifier(settings.relay_address)
        try:
            items = EventStore(
                pool,
                category="item",
                source="orders-svc",
                codec=orders_svc.item.events.CODEC,
                publish=orders_svc.item.contract.publish,
                relay_notifier=relay_notifier,
            )
            orders = EventStore(
                pool,
                category="order",
                source="orders-svc",
                codec=orders_svc.order.events.CODEC,
                publish=orders_svc.order.contract.publish,
                relay_notifier=relay_notifier,
            )
            yield Resources(
                pool=pool,
                relay_notifier=relay_notifier,
                items=items,
                item_cache=ItemCache(items),
                orders=orders,
                watch=StreamWatch(orders),
                admission=Admission(
                    pool, wait_max=settings.order_wait_max, timeout=settings.order_timeout
                ),
            )
        finally:
            relay_notifier.close()
