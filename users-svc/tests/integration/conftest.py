"""users-svc over a database of its own, without a network."""

import os
from collections.abc import AsyncIterator

import httpx
import pytest

from shared import postgres
from users_svc import api
from users_svc.bootstrap import Resources, open_resources
from users_svc.personal_data import KEY_BYTES, Vault
from users_svc.settings import UsersSettings


@pytest.fixture
async def resources(database: str) -> AsyncIterator[Resources]:
    await postgres.migrate(database, "shared", "users_svc")
    async with open_resources(UsersSettings(database_url=database), "test") as resources:
        yield resources


@pytest.fixture
def vault(resources: Resources) -> Vault:
    return Vault(resources.pool, os.urandom(KEY_BYTES))


@pytest.fixture
async def client(resources: Resources, vault: Vault) -> AsyncIterator[httpx.AsyncClient]:
    app = api.create_app(resources, vault)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://users") as client:
        yield client
