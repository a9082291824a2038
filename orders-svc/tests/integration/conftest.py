"""orders-svc over a database of its own, without a network."""

from collections.abc import AsyncIterator

import httpx
import pytest

from orders_svc import api
from orders_svc.bootstrap import Resources, open_resources
from orders_svc.settings import OrdersSettings
from shared import postgres


@pytest.fixture
async def resources(database: str) -> AsyncIterator[Resources]:
    await postgres.migrate(database, "shared", "orders_svc")
    async with open_resources(OrdersSettings(database_url=database), "test") as resources:
        yield resources


@pytest.fixture
async def client(resources: Resources) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(api.create_app(resources), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://orders") as client:
        yield client
