"""Admission control: no new orders that would wait too long for their decision.

To accept an order costs a tenth of what it costs to decide on it. Without a bound an API accepts
more than the workers decide on, each order waits longer than the one before, and after the order
timeout all of them are rejected: more work, and no order confirmed.

How long a new order would wait is predicted: the orders that wait, by those that are decided in a
second. A pause, such as while a worker is replaced, is no reason to refuse until it has taken as
long as an order may wait. Users with the most waiting orders are refused first.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg

from orders_svc import user_messages
from orders_svc.order import publications
from shared.runtime import metrics, postgres
from shared.runtime.identifiers import first_id_at
from shared.runtime.logs import because
from shared.runtime.postgres import Connection
from shared.web.problems import HttpProblem

OVERLOADED = "overloaded"
DETAIL = "earlier orders are waiting for the decision on their credit; nothing was recorded; retry"
OBSERVE_SECONDS = 0.5
"""Between two observations: no request queries by itself."""
WAITING_MIN = 50
"""So many orders can always wait. Fewer can wait for another reason than their turn: their streams
are parked in users-svc, which this service cannot see."""
BUSY_MIN = 10
"""Orders that wait, at the begin and at the end of a time, if what is decided in it is all that can
be decided: with fewer it can be all that was placed."""
RATES_MIN, RATES_MAX = 6, 10
"""Busy times before their mean rate is known, and those that it is of: the last five seconds."""

# The first event places an order, and the next one decides on it or cancels it. The read model of
# orders would be no measure: it lags behind whenever the worker does.
COUNT_DECIDED = """
    SELECT count(*) AS since_before, count(*) FILTER (WHERE stream_id >= $2) AS now
    FROM streams
    WHERE stream_id >= $1 AND stream_id < $3 AND category = 'order' AND version > 1
"""

# While a user's messages are parked here, their orders wait for an operator, and for no turn.
COUNT_WAITING = """
    SELECT user_id, count(*) AS orders
    FROM streams
    JOIN events USING (stream_id),
        LATERAL (SELECT (data->>'user_id')::uuid AS user_id) AS placed
    WHERE stream_id >= $1 AND stream_id < $2 AND category = 'order'
      AND streams.version = 1 AND events.version = 1
      AND NOT EXISTS (
          SELECT FROM parked_streams
          WHERE consumer = $3 AND topic = $4 AND parked_streams.stream_id = user_id
      )
    GROUP BY user_id
"""

REFUSED = metrics.Counter(
    "hometown.order.refusals", "{order}", "Orders that were refused because others wait too long"
)

log = logging.getLogger(__name__)


class Backlog:
    """How many orders can wait, from how many waited and were decided until now."""

    def __init__(self, wait_max: timedelta) -> None:
        self._wait_max = wait_max
        self._rates: deque[float] = deque(maxlen=RATES_MAX)
        """Decisions per second, in the last busy times."""
        self._waiting = 0
        self._observed_at: datetime | None = None
        self._moved_at: datetime | None = None
        """When an order was last decided, or none waited."""

    def observe(self, now: datetime, *, decided: int, waiting: int) -> float:
        """How many can wait, without a bound while that is unknown; `decided` since the last time.

        It is what is decided within the longest wait. Times without any decision do not count: if
        nothing is decided for as long as an order may wait, no more than WAITING_MIN can.
        """
        if self._observed_at is not None and decided > 0:
            seconds = (now - self._observed_at).total_seconds()
            if seconds > 0 and min(self._waiting, waiting) >= BUSY_MIN:
                self._rates.append(decided / seconds)
        if self._moved_at is None or decided > 0 or waiting == 0:
            self._moved_at = now
        self._waiting, self._observed_at = waiting, now
        if now - self._moved_at > self._wait_max:
            return WAITING_MIN
        if len(self._rates) < RATES_MIN:
            return float("inf")
        rate = sum(self._rates) / len(self._rates)
        return max(WAITING_MIN, rate * self._wait_max.total_seconds())


def get_share(waiting: Iterable[int], waiting_max: float) -> int | None:
    """How many orders of one user can wait, if those of all together are to be `waiting_max`.

    Users with fewer keep theirs (max-min fairness). None when all can have what they have.
    """
    left, ascending = waiting_max, sorted(waiting)
    for number, count in enumerate(ascending):
        users = len(ascending) - number
        if count * users > left:
            return int(left // users)
        left -= count
    return None


class Admission:
    """Refuses new orders that would wait for longer than `wait_max`, of some users or of all.

    Orders that have been pending for twice as long do not count: they wait for something else
    than their turn. With a `wait_max` of the order timeout, or more, none is refused.
    """

    def __init__(self, pool: asyncpg.Pool, *, wait_max: timedelta, timeout: timedelta) -> None:
        self._pool = pool
        self._wait_max = wait_max
        self._is_switched_off = wait_max >= timeout
        self._backlog = Backlog(wait_max)
        self._begin: UUID | None = None
        self._decided = 0
        """Of the orders since `_begin`, when they were last counted."""
        self._waiting: Mapping[UUID, int] = {}
        self.share: int | None = None
        """How many orders of one user can wait; None for any number."""

    def demand(self, user_id: UUID) -> None:
        """Raises HttpProblem while a user's new orders are refused; nothing is recorded yet."""
        if self.share is not None and self._waiting.get(user_id, 0) >= self.share:
            REFUSED.add(1)
            raise HttpProblem(503, OVERLOADED, DETAIL)

    async def observe(self, database: asyncpg.Pool | Connection, now: datetime) -> None:
        """Decide whose new orders are refused from now on, by two queries.

        Raises:
            UNAVAILABLE, PostgresError: one cannot be executed; new orders are accepted.
        """
        if self._is_switched_off:
            return
        try:
            decided, waiting = await self.count(database, now)
        except Exception:
            self.share = None
            raise
        orders = sum(waiting.values())
        orders_max = self._backlog.observe(now, decided=decided, waiting=orders)
        share = get_share(waiting.values(), orders_max)
        if share is not None and self.share is None:
            about = {
                "orders": orders,
                "orders_max": round(orders_max),
                "orders_per_user_max": share,
            }
            log.warning("too many orders wait: new ones of some users are refused", extra=about)
        elif share is None and self.share is not None:
            log.warning("new orders of all users are accepted again")
        self._waiting, self.share = waiting, share

    async def count(
        self, database: asyncpg.Pool | Connection, now: datetime
    ) -> tuple[int, Mapping[UUID, int]]:
        """How many orders were decided since the last count; how many wait now, by user."""
        begin, end = first_id_at(now - 2 * self._wait_max), first_id_at(now + self._wait_max)
        counted = await database.fetchrow(COUNT_DECIDED, self._begin or begin, begin, end)
        assert counted is not None  # one row
        decided = counted["since_before"] - self._decided if self._begin else 0
        self._begin, self._decided = begin, counted["now"]
        consumer, topic = publications.CONSUMER, user_messages.TOPIC
        rows = await database.fetch(COUNT_WAITING, begin, end, consumer, topic)
        return decided, {row["user_id"]: row["orders"] for row in rows}

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
                log.warning("whether orders wait too long is unknown", extra=because(error))
            await asyncio.sleep(OBSERVE_SECONDS)
