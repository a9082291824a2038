"""The hourly comparison: its result is stored and shown, and a difference is logged as an error."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest

from analytics_spark.reconciliation import reconciler
from analytics_spark.reconciliation.reconciler import Health
from analytics_spark.serving.api import create_app
from analytics_spark.serving.bootstrap import Resources
from analytics_spark.serving.stream import Feed
from analytics_spark.serving.topic_ends import TopicEnds
from analytics_spark.settings import ReconcileSettings
from local_stack.run_folder import RunFolder
from local_stack.testing import Databases, bearer
from shared.runtime import postgres
from shared.runtime.brokers import Brokers
from shared.web.auth import RequestAuthenticator
from test_support.analytics.histories import sample
from test_support.analytics.reconciled_world import World


@pytest.fixture
def world(databases: Databases, tables: str) -> Iterator[World]:
    with databases.create("shared") as users, databases.create("shared", "orders_svc") as orders:
        yield World(users, orders, tables).batch(*sample()).finish()


@pytest.fixture
def settings(world: World) -> ReconcileSettings:
    return ReconcileSettings(
        database_url=world.analytics,
        users_store_url=world.stores["users"],
        orders_store_url=world.stores["orders"],
    )


def status_of(world: World, authenticator: RequestAuthenticator, issuing: RunFolder) -> Any:
    async def ask() -> Any:
        async with postgres.open_pool(world.analytics, name="test", connections_max=2) as pool:
            ends, feed = TopicEnds(Brokers("127.0.0.1:1")), Feed(pool, seconds_max=1)
            resources = Resources(pool=pool, topic_ends=ends, feed=feed)
            transport = httpx.ASGITransport(create_app(resources, authenticator))
            headers = bearer(issuing, "analyst")
            async with httpx.AsyncClient(transport=transport, headers=headers) as client:
                answer = await client.get("http://api/v1/status")
                return answer.raise_for_status().json()["reconciliation"]

    return asyncio.run(ask())


def attempt(settings: ReconcileSettings) -> Health:
    health = Health()
    asyncio.run(reconciler.attempt(settings, health))
    return health


def errors_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.ERROR and record.name == reconciler.__name__
    ]


def test_an_untouched_table_is_stored_and_shown_as_equal(
    world: World,
    settings: ReconcileSettings,
    authenticator: RequestAuthenticator,
    issuing: RunFolder,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert status_of(world, authenticator, issuing) is None

    health = attempt(settings)

    assert (health.failure, health.read_differences()) == (None, {(): 0})
    shown = status_of(world, authenticator, issuing)
    assert (shown["purchases"], shown["differences"], shown["hours"]) == (16, 0, [])
    assert shown["until"] == "2016-11-11T07:00:00Z"
    assert errors_in(caplog) == []


def test_a_tampered_row_is_stored_shown_and_logged_as_an_error(
    world: World,
    settings: ReconcileSettings,
    authenticator: RequestAuthenticator,
    issuing: RunFolder,
    caplog: pytest.LogCaptureFixture,
) -> None:
    world.change("UPDATE cells SET cents = cents + 1 WHERE cents = 1616664")

    health = attempt(settings)

    assert (health.failure, health.read_differences()) == (None, {(): 1})
    shown = status_of(world, authenticator, issuing)
    assert (shown["differences"], shown["hours"]) == (1, ["2016-11-11T00:00:00Z"])
    errors = errors_in(caplog)
    assert "amount 16166.65, expected purchases 1" in errors[0]
    assert errors[-1].endswith("16 purchases: 1 cells differ")
    assert "BJ" not in " ".join(errors), "where a user lives is in no log"


def test_an_unavailable_store_is_reported_and_no_difference(
    world: World,
    settings: ReconcileSettings,
    authenticator: RequestAuthenticator,
    issuing: RunFolder,
) -> None:
    away = settings.model_copy(update={"users_store_url": "postgresql://nobody@127.0.0.1:1/users"})

    health = attempt(away)

    assert health.failure is not None
    assert health.failure.startswith("could not compare: ")
    assert health.read_differences() == {}
    assert status_of(world, authenticator, issuing) is None


def test_the_number_of_stored_results_is_bounded(
    world: World, settings: ReconcileSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler, "KEPT_MAX", 2)
    for _ in range(3):
        attempt(settings)

    with psycopg.connect(world.analytics) as connection:
        assert connection.execute("SELECT count(*) FROM reconciliations").fetchone() == (2,)
