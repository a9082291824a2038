"""From settings to resources that are open: the only place that builds them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from shared.eventsourcing.event_store import EventStore
from shared.runtime import postgres
from shared.runtime.relay_notifier import RelayNotifier
from things_svc import contract
from things_svc.events import CODEC, ThingEvent
from things_svc.settings import ThingsSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    pool: asyncpg.Pool
    relay_notifier: RelayNotifier
    things: EventStore[ThingEvent]


@asynccontextmanager
async def open_resources(settings: ThingsSettings, name: str) -> AsyncIterator[Resources]:
    """Open what a process named `name` needs; closed in reverse order."""
    async with postgres.open_pool(
        settings.database_dsn, name=name, connections_max=settings.database_connections_max
    ) as pool:
        relay_notifier = RelayNotifier(settings.relay_address)
        try:
            things = EventStore(
                pool,
                category="thing",
                source="things-svc",
                codec=CODEC,
                publish=contract.publish,
                relay_notifier=relay_notifier,
            )
            yield Resources(pool=pool, relay_notifier=relay_notifier, things=things)
        finally:
            relay_notifier.close()
