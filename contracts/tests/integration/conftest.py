"""Both services, each over a database of its own, as its worker sees it."""

import os
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from fastapi import FastAPI

import orders_svc.api
import orders_svc.bootstrap
import users_svc.api
import users_svc.bootstrap
from local_stack.run_folder import RunFolder
from local_stack.testing import Databases, bearer
from orders_svc.service_clients import open_service_clients
from orders_svc.settings import OrdersSettings
from shared.web.auth import RequestAuthenticator
from users_svc.personal_data import KEY_BYTES, Vault
from users_svc.settings import UsersSettings


@pytest.fixture
def database(databases: Databases) -> Iterator[str]:
    with databases.create("shared", "users_svc") as dsn:
        yield dsn


@pytest.fixture
def other_database(databases: Databases) -> Iterator[str]:
    with databases.create("shared", "orders_svc") as dsn:
        yield dsn


@pytest.fixture
async def users(database: str) -> AsyncIterator[users_svc.bootstrap.Resources]:
    settings = UsersSettings(database_url=database)
    async with users_svc.bootstrap.open_resources(settings, "test") as resources:
        yield resources


@pytest.fixture
async def orders(other_database: str) -> AsyncIterator[orders_svc.bootstrap.Resources]:
    settings = OrdersSettings(database_url=other_database)
    async with orders_svc.bootstrap.open_resources(settings, "test") as resources:
        yield resources


def clerk_of(app: FastAPI, issuing: RunFolder) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://test",
        headers=bearer(issuing, "clerk"),
    )


@pytest.fixture
async def at_users(
    users: users_svc.bootstrap.Resources, authenticator: RequestAuthenticator, issuing: RunFolder
) -> AsyncIterator[httpx.AsyncClient]:
    """A clerk at users-svc."""
    vault = Vault(users.pool, os.urandom(KEY_BYTES))
    async with clerk_of(users_svc.api.create_app(users, vault, authenticator), issuing) as client:
        yield client


@pytest.fixture
async def at_orders(
    orders: orders_svc.bootstrap.Resources, authenticator: RequestAuthenticator, issuing: RunFolder
) -> AsyncIterator[httpx.AsyncClient]:
    """A clerk at orders-svc."""
    async with open_service_clients(users_url=None, analytics_url=None) as service_clients:
        app = orders_svc.api.create_app(orders, authenticator, service_clients)
        async with clerk_of(app, issuing) as client:
            yield client
