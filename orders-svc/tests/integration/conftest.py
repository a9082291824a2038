"""orders-svc over a database of its own, without a network."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from local_stack.run_folder import RunFolder
from local_stack.testing import Databases, bearer
from orders_svc import api
from orders_svc.bootstrap import Resources, open_resources
from orders_svc.service_clients import open_service_clients
from orders_svc.settings import OrdersSettings
from shared.web.auth import RequestAuthenticator


@pytest.fixture
def database(databases: Databases) -> Iterator[str]:
    """The DSN of a database of this test alone, with the tables of the service."""
    with databases.create("shared", "orders_svc") as dsn:
        yield dsn


@pytest.fixture
async def resources(database: str) -> AsyncIterator[Resources]:
    async with open_resources(OrdersSettings(database_url=database), "test") as resources:
        yield resources


@pytest.fixture
async def transport(
    resources: Resources, authenticator: RequestAuthenticator
) -> AsyncIterator[httpx.ASGITransport]:
    """The application, called in process; the other services are unavailable."""
    async with open_service_clients(users_url=None, analytics_url=None) as service_clients:
        app = api.create_app(resources, authenticator, service_clients)
        yield httpx.ASGITransport(app, raise_app_exceptions=False)


@pytest.fixture
async def client(
    transport: httpx.ASGITransport, issuing: RunFolder
) -> AsyncIterator[httpx.AsyncClient]:
    """A client with a clerk's token."""
    async with httpx.AsyncClient(
        transport=transport, base_url="http://orders", headers=bearer(issuing, "clerk")
    ) as client:
        yield client
