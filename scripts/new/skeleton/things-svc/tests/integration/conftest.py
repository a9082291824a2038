"""things-svc over a database of its own, without a network."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from local_stack.run_folder import RunFolder
from local_stack.testing import Databases, bearer
from shared.web.auth import RequestAuthenticator
from things_svc import api
from things_svc.bootstrap import Resources, open_resources
from things_svc.settings import ThingsSettings


@pytest.fixture
def database(databases: Databases) -> Iterator[str]:
    """The DSN of a database of this test alone, with the tables of the service."""
    with databases.create("shared", "things_svc") as dsn:
        yield dsn


@pytest.fixture
async def resources(database: str) -> AsyncIterator[Resources]:
    async with open_resources(ThingsSettings(database_url=database), "test") as resources:
        yield resources


@pytest.fixture
def transport(resources: Resources, authenticator: RequestAuthenticator) -> httpx.ASGITransport:
    """The application as any client reaches it."""
    app = api.create_app(resources, authenticator)
    return httpx.ASGITransport(app, raise_app_exceptions=False)


@pytest.fixture
async def client(
    transport: httpx.ASGITransport, issuing: RunFolder
) -> AsyncIterator[httpx.AsyncClient]:
    """A clerk's client."""
    async with httpx.AsyncClient(
        transport=transport, base_url="http://things", headers=bearer(issuing, "clerk")
    ) as client:
        yield client
