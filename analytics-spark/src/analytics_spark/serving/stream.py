"""Changed hours as batches commit them: one look at the database for everybody who listens.

A listener reads from the database what they missed, and then follows. Nothing is kept for one of
them: all read the same last events, and whoever is too slow for these has to come again.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from analytics_spark.serving import change_feed, hour_queries
from analytics_spark.serving.change_feed import Position
from analytics_spark.serving.hour_queries import HourTotals
from shared.runtime import postgres
from shared.runtime.processes import wait

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
LISTENERS_MAX = 100
EVENTS_KEPT_MAX = 32
"""How many events a listener may be behind."""


class TooManyListeners(Exception):
    """There are LISTENERS_MAX already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """All that changed up to the position; `hours` is None when all may have."""

    position: Position | None
    watermark: datetime | None
    hours: Sequence[tuple[datetime, HourTotals]] | None

    @property
    def says_something(self) -> bool:
        return self.hours is None or bool(self.hours)


class Feed:
    """Looks for new batches, and tells all listeners."""

    def __init__(self, pool: asyncpg.Pool, seconds_max: float) -> None:
        self._pool = pool
        self._seconds_max = seconds_max
        self._position: Position | None = None
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT_MAX)
        self._told = 0
        """How many events there have been; the last ones are kept."""
        self._news = asyncio.Event()
        self._has_begun = asyncio.Event()
        self._is_closed = False
        self._listeners = 0

    async def run(self) -> None:
        """Look for ever. A look that fails is followed by others, from the same position."""
        is_away = False
        while True:
            try:
                await self._look()
                is_away = False
            except (*postgres.UNAVAILABLE, TimeoutError) as error:
                if not is_away:
                    log.warning("no new batches can be seen for now: %r", error)
                is_away = True
            except Exception:  # the next look may go well, and without one all would wait for ever
                log.exception("looking for new batches failed")
            await asyncio.sleep(POLL_SECONDS)

    async def _look(self) -> None:
        if not self._has_begun.is_set():
            self._position = await change_feed.newest(self._pool)
            self._has_begun.set()
        elif await change_feed.newest(self._pool) != self._position:
            event = await self._since(self._position)
            self._position = event.position
            if event.says_something:
                self._tell(event)

    async def _since(self, position: Position | None) -> Event:
        async with hour_queries.snapshot(self._pool) as connection:
            change = await change_feed.since(connection, position)
            totals = None
            if change.hours is not None:
                totals = await hour_queries.some_hours(connection, change.hours)
        return Event(position=change.position, watermark=change.watermark, hours=totals)

    def _tell(self, event: Event) -> None:
        self._events.append(event)
        self._told += 1
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def close(self) -> None:
        """End all streams, so that the process can stop."""
        self._is_closed = True
        self._has_begun.set()
        self._wake()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """A listener's place. Raises TooManyListeners when there is none."""
        if self._listeners >= LISTENERS_MAX:
            raise TooManyListeners
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1

    async def events(self, position: Position | None) -> AsyncGenerator[Event, None]:
        """What changed after the position, and then what changes, until it is time to come again.

        It ends after `seconds_max`, when the feed is closed or the database away, and for a
        listener who is EVENTS_KEPT_MAX behind; who comes again with the last position misses
        nothing.
        """
        deadline = time.monotonic() + self._seconds_max
        await wait(self._has_begun, self._seconds_max)
        # Taken before the look: what the feed tells from here on begins at what it saw before.
        read = self._told
        event = None if self._is_closed else await self._missed(position)
        if event is None:
            return
        if event.says_something:
            yield event
        position = event.position
        while await self._has_more(read, deadline):
            kept_from = self._told - len(self._events)
            if read < kept_from:
                log.warning("a listener was more than %d events behind", EVENTS_KEPT_MAX)
                return
            event = self._events[read - kept_from]
            read += 1
            if reaches(position, event.position):
                continue
            if event.hours is None:  # the feed cannot tell, but it may stand elsewhere
                event = await self._missed(position)
            if event is None:
                return
            if event.says_something:
                yield event
            position = event.position

    async def _missed(self, position: Position | None) -> Event | None:
        """The look back, None when the database is away; ahead is what the feed tells next."""
        try:
            return await self._since(position)
        except (*postgres.UNAVAILABLE, TimeoutError) as error:
            log.warning("a listener's changes cannot be read for now: %r", error)
            return None

    async def _has_more(self, read: int, deadline: float) -> bool:
        while not self._is_closed and self._told <= read:
            seconds_left = deadline - time.monotonic()
            if seconds_left <= 0:
                return False
            await wait(self._news, seconds_left)
        return not self._is_closed


def reaches(position: Position | None, other: Position | None) -> bool:
    """Whether whoever stands at the position has seen the other one."""
    return position is not None and other is not None and position.reaches(other)


@asynccontextmanager
async def open_feed(pool: asyncpg.Pool, seconds_max: float) -> AsyncIterator[Feed]:
    """A feed that looks for new batches until the end."""
    feed = Feed(pool, seconds_max)
    looking = asyncio.create_task(feed.run())
    try:
        yield feed
    finally:
        feed.close()
        looking.cancel()
        await asyncio.wait([looking])
