"""The process that compares analytics with the event stores each hour, and logs differences."""

import asyncio
import logging
from collections.abc import Mapping

import asyncpg
import psycopg

from analytics_spark.reconciliation import reconcile
from analytics_spark.reconciliation.reconcile import NotComparable, Reconciliation
from analytics_spark.settings import ReconcileSettings
from shared.runtime import metrics, processes
from shared.runtime.logs import because
from shared.web.health import health_server

DIFFERENCES = metrics.Gauge(
    "hometown.reconcile.differences",
    "{cell}",
    "Cells that differed from the event stores in the last comparison, at most 1,000",
)

log = logging.getLogger(__name__)

RETRY_SECONDS = 60
"""The pause after a comparison that failed."""

DIFFERENCES_LOGGED_MAX = 20
HOURS_STORED_MAX = 100
KEPT_MAX = 10_000
"""Results that are kept: those of a year."""

STORE = """
    INSERT INTO reconciliations (since, until, purchases, undecided, differences, hours)
    VALUES ($1, $2, $3, $4, $5, $6)
    RETURNING id
"""

FORGET = "DELETE FROM reconciliations WHERE id <= $1"


class Health:
    """Whether the last comparison could be made. A difference is no failure."""

    def __init__(self) -> None:
        self.failure: str | None = None
        self.differences: int | None = None
        """Of the last comparison that could be made."""

    def read_differences(self) -> Mapping[metrics.Values, int]:
        return {} if self.differences is None else {(): self.differences}

    async def check(self) -> str | None:
        return self.failure


async def run(settings: ReconcileSettings) -> None:
    """Compare at once, and then each `reconcile_seconds`, until SIGTERM."""
    stop = processes.create_stop_event()
    health = Health()
    checks = {"reconciliation": health.check}
    with DIFFERENCES.read_by(health.read_differences):
        async with health_server(settings.http_host, settings.http_port, checks):
            while not stop.is_set():
                done = await attempt(settings, health)
                pause = settings.reconcile_seconds if done else RETRY_SECONDS
                await processes.wait(stop, pause)


async def attempt(settings: ReconcileSettings, health: Health) -> bool:
    """Compare once; False when that failed, to be retried sooner."""
    try:
        result = await asyncio.to_thread(compare, settings)
        await store(settings.database_dsn, result)
    except (NotComparable, psycopg.Error, asyncpg.PostgresError, OSError) as error:
        health.failure = f"could not compare: {error}".splitlines()[0]
        log.warning("could not compare with the event stores", extra=because(error))
        return False
    health.failure, health.differences = None, len(result.differences)
    log_result(result)
    return True


def compare(settings: ReconcileSettings) -> Reconciliation:
    return reconcile.compare(
        settings.database_dsn,
        str(settings.users_store_url),
        str(settings.orders_store_url),
        hours_max=settings.reconcile_hours_max,
    )


async def store(dsn: str, result: Reconciliation) -> None:
    """Store the result, for `GET /v1/status`."""
    hours = sorted({each.hour for each in result.differences})[:HOURS_STORED_MAX]
    connection = await asyncpg.connect(dsn, timeout=reconcile.CONNECT_TIMEOUT_SECONDS)
    try:
        number = await connection.fetchval(
            STORE,
            result.since,
            result.until,
            result.purchases,
            result.undecided,
            len(result.differences),
            hours,
        )
        await connection.execute(FORGET, number - KEPT_MAX)
    finally:
        await connection.close()


def log_result(result: Reconciliation) -> None:
    for difference in result.differences[:DIFFERENCES_LOGGED_MAX]:
        log.error(
            "a cell differs from the event stores: %s",
            difference.amounts,
            extra={name: getattr(difference, name) for name in ("hour", "user_id", "item_id")},
        )
    if result.differences:
        log.error("%s", summarize(result))
    else:
        log.info("%s", summarize(result))


def summarize(result: Reconciliation) -> str:
    if result.since is None:
        return "no hour is final yet"
    differ = f"{len(result.differences)} cells differ" if result.differences else "all equal"
    undecided = f", {result.undecided} of them undecided" if result.undecided else ""
    return (
        f"final hours {result.since:%Y-%m-%dT%H} to {result.until:%Y-%m-%dT%H}:"
        f" {result.purchases} purchases{undecided}: {differ}"
    )
