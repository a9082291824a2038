"""Builds all resources of a process from its settings; no other module does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from shared.eventsourcing.event_store import EventStore
from shared.runtime import postgres
from shared.runtime.relay_notifier import RelayNotifier
from users_svc import contract
from users_svc.events import CODEC, UserEvent
from users_svc.settings import UsersSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    pool: asyncpg.Pool
    relay_notifier: RelayNotifier
    users: EventStore[UserEvent]


@asynccontextmanager
async def open_resources(settings: UsersSettings, name: str) -> AsyncIterator[Resources]:
    """Open the resources of the process `name`; they are closed in reverse order."""
    async with postgres.open_pool(
        settings.database_dsn, name=name, connections_max=settings.database_connections_max
    ) as pool:
        relay_notifier = RelayNotifier(settings.relay_address)
        try:
            users = EventStore(
                pool,
                category="user",
                source="users-svc",
                codec=CODEC,
                publish=contract.publish,
                relay_notifier=relay_notifier,
            )
            yield Resources(pool=pool, relay_notifier=relay_notifier, users=users)
        finally:
            relay_notifier.close()
