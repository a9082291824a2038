"""Both services, each over a database of its own, as its worker sees it."""

from collections.abc import AsyncIterator, Iterator

import pytest

import orders_svc.bootstrap
import users_svc.bootstrap
from embedded.pytest_plugin import new_database
from orders_svc.settings import OrdersSettings
from shared import postgres
from users_svc.settings import UsersSettings


@pytest.fixture
def other_database(postgres_dsn: str) -> Iterator[str]:
    with new_database(postgres_dsn) as dsn:
        yield dsn


@pytest.fixture
async def users(database: str) -> AsyncIterator[users_svc.bootstrap.Resources]:
    await postgres.migrate(database, "shared", "users_svc")
    settings = UsersSettings(database_url=database)
    async with users_svc.bootstrap.open_resources(settings, "test") as resources:
        yield resources


@pytest.fixture
async def orders(other_database: str) -> AsyncIterator[orders_svc.bootstrap.Resources]:
    await postgres.migrate(other_database, "shared", "orders_svc")
    settings = OrdersSettings(database_url=other_database)
    async with orders_svc.bootstrap.open_resources(settings, "test") as resources:
        yield resources
