"""Admission control: no new orders while earlier ones wait too long for their decision.

To accept an order costs a tenth of what it costs to decide on it. Without a bound an API accepts
more than the workers decide on, each order waits longer than the one before, and after the order
timeout all of them are rejected: more work, and no order confirmed.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import asyncpg
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from shared.runtime import postgres
from shared.runtime.identifiers import first_id_at
from shared.runtime.postgres import Connection
from shared.web.openapi import IDEMPOTENCY_KEY
from shared.web.problems import HttpProblem, to_problem_response

OVERLOADED = "overloaded"
DETAIL = "earlier orders are waiting for the decision on their credit; nothing was recorded; retry"
ORDERS_PATH = "/v1/orders"
RETRY_AFTER_SECONDS = 2
OBSERVE_SECONDS = 0.5
"""Between two queries: none of a request's own."""
WAITING_MIN = 50
"""Orders that wait too long before new ones are refused. Fewer can wait for another reason: their
streams are parked, or those of their user."""
STREAMS_MAX = 500
"""Read by a query: the newest ones that are old enough. Orders are decided in the sequence of their
placement, so while there is a backlog it is among these."""

# The first event places an order, and the next one decides on it or cancels it. The read model of
# orders would be no measure: it lags behind whenever the worker does.
WAITING = """
    SELECT count(*)
    FROM (
        SELECT category, version
        FROM streams
        WHERE stream_id >= $1 AND stream_id < $2
        ORDER BY stream_id DESC
        LIMIT $3
    ) AS newest
    WHERE category = 'order' AND version = 1
"""

log = logging.getLogger(__name__)


def create_refusal() -> HttpProblem:
    return HttpProblem(503, OVERLOADED, DETAIL, {"Retry-After": str(RETRY_AFTER_SECONDS)})


class Admission:
    """Refuses new orders while at least WAITING_MIN have been pending for longer than `wait_max`.

    Those that have been pending for longer than `timeout` do not count: an order that nothing has
    rejected by then is not waiting for its turn. So it never refuses permanently.
    """

    def __init__(self, pool: asyncpg.Pool, *, wait_max: timedelta, timeout: timedelta) -> None:
        self._pool = pool
        self._wait_max = wait_max
        self._timeout = timeout
        self.is_refusing = False

    def demand(self) -> None:
        """Raises HttpProblem while new orders are refused; the caller has recorded nothing yet."""
        if self.is_refusing:
            raise create_refusal()

    async def observe(self, database: asyncpg.Pool | Connection, now: datetime) -> None:
        """Decide whether new orders are refused from now on, by one query.

        Raises:
            UNAVAILABLE, PostgresError: it cannot be executed; new orders are accepted.
        """
        try:
            waiting = await self._count_waiting(database, now)
        except Exception:
            self.is_refusing = False
            raise
        is_refusing = waiting >= WAITING_MIN
        if is_refusing and not self.is_refusing:
            seconds = self._wait_max.total_seconds()
            log.warning("new orders are refused: %d wait for more than %g s", waiting, seconds)
        elif self.is_refusing and not is_refusing:
            log.warning("new orders are accepted again")
        self.is_refusing = is_refusing

    async def _count_waiting(self, database: asyncpg.Pool | Connection, now: datetime) -> int:
        begin, end = first_id_at(now - self._timeout), first_id_at(now - self._wait_max)
        waiting: int = await database.fetchval(WAITING, begin, end, STREAMS_MAX)
        return waiting

    @asynccontextmanager
    async def observing(self) -> AsyncIterator[None]:
        """Observe every OBSERVE_SECONDS until the block ends.

        One connection of the pool is kept for it: under load the query would wait for seconds
        behind those of the requests.
        """
        task = asyncio.create_task(self._observe_periodically())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _observe_periodically(self) -> None:
        while True:
            try:
                async with self._pool.acquire() as connection:
                    while True:
                        await self.observe(connection, datetime.now(UTC))
                        await asyncio.sleep(OBSERVE_SECONDS)
            except (*postgres.UNAVAILABLE, asyncpg.PostgresError) as error:
                log.warning("whether orders wait too long is unknown: %r", error)
            await asyncio.sleep(OBSERVE_SECONDS)


class EarlyRefusal:
    """Refuses a new order before its token and its body are read, while new orders are refused.

    What a refusal costs is not left for the orders that wait. A request with an idempotency key is
    refused later, as it may have a stored response.
    """

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self.app = app
        self._admission = admission
        self._refusal = to_problem_response(create_refusal())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._admission.is_refusing and is_new_order(scope):
            return await self._refusal(scope, receive, send)
        return await self.app(scope, receive, send)


def is_new_order(scope: Scope) -> bool:
    """Whether this is a request to place an order, which has no stored response."""
    return (
        scope["type"] == "http"
        and (scope["method"], scope["path"]) == ("POST", ORDERS_PATH)
        and IDEMPOTENCY_KEY not in Headers(scope=scope)
    )
