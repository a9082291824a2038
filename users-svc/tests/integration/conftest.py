"""users-svc over a database of its own, without a network."""

import os
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from local_stack.run_folder import RunFolder
from local_stack.testing import Databases, bearer
from shared.web.auth import RequestAuthenticator
from users_svc import api
from users_svc.bootstrap import Resources, open_resources
from users_svc.personal_data import KEY_BYTES, Vault
from users_svc.settings import UsersSettings


@pytest.fixture
def database(databases: Databases) -> Iterator[str]:
    """The DSN of a database of this test alone, with the tables of the service."""
    with databases.create("shared", "users_svc") as dsn:
        yield dsn


@pytest.fixture
async def resources(database: str) -> AsyncIterator[Resources]:
    async with open_resources(UsersSettings(database_url=database), "test") as resources:
        yield resources


@pytest.fixture
def vault(resources: Resources) -> Vault:
    return Vault(resources.pool, os.urandom(KEY_BYTES))


@pytest.fixture
def transport(
    resources: Resources, vault: Vault, authenticator: RequestAuthenticator
) -> httpx.ASGITransport:
    """The application, called in process."""
    app = api.create_app(resources, vault, authenticator)
    return httpx.ASGITransport(app, raise_app_exceptions=False)


@pytest.fixture
async def client(
    transport: httpx.ASGITransport, issuing: RunFolder
) -> AsyncIterator[httpx.AsyncClient]:
    """A client with a clerk's token."""
    async with httpx.AsyncClient(
        transport=transport, base_url="http://users", headers=bearer(issuing, "clerk")
    ) as client:
        yield client
