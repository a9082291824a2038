"""The event store of users-svc in a database of its own, for what is measured without its API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg
from pydantic import PostgresDsn

import users_svc.bootstrap
from benchmarks import servers
from local_stack.stack_spec import StackContext
from shared.eventsourcing.event_store import EventStore
from users_svc.events import UserEvent
from users_svc.settings import UsersSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class UsersStore:
    """`connection` is one to the same database, next to the store's own."""

    dsn: str
    connection: asyncpg.Connection
    users: EventStore[UserEvent]


@asynccontextmanager
async def open_users_store(context: StackContext) -> AsyncIterator[UsersStore]:
    async with (
        servers.database(context, "shared", "users_svc") as dsn,
        users_svc.bootstrap.open_resources(
            UsersSettings(database_url=PostgresDsn(dsn)), "bench"
        ) as resources,
        servers.connected(dsn) as connection,
    ):
        yield UsersStore(dsn=dsn, connection=connection, users=resources.users)
