"""Changed hours as batches commit them: one poll of the database for all listeners.

A listener first reads the changes that it missed from the database, and then follows the feed.
Nothing is stored per listener: all read the same last events, and one that is too slow for them is
disconnected.
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
from shared.runtime.logs import because
from shared.runtime.processes import wait

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
LISTENERS_MAX = 100
VISITORS_MAX = 50
"""Listeners without a token: callers with one keep the other places."""
EVENTS_KEPT_MAX = 32
"""How many events a listener can be behind."""


class TooManyListeners(Exception):
    """There are LISTENERS_MAX already, or VISITORS_MAX for one without a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The changes up to the position; `hours` is None when any hour may have changed."""

    position: Position | None
    watermark: datetime | None
    hours: Sequence[tuple[datetime, HourTotals]] | None

    @property
    def has_changes(self) -> bool:
        return self.hours is None or bool(self.hours)


class Feed:
    """Polls for new batches, and publishes their changes to all listeners."""

    def __init__(self, pool: asyncpg.Pool, seconds_max: float) -> None:
        self._pool = pool
        self._seconds_max = seconds_max
        self._position: Position | None = None
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT_MAX)
        self._published = 0
        """Number of events so far; the last EVENTS_KEPT_MAX are kept."""
        self._news = asyncio.Event()
        self._has_begun = asyncio.Event()
        self._is_closed = False
        self._listeners = 0
        self._visitors = 0

    async def run(self) -> None:
        """Poll until cancelled. A poll that fails is repeated from the same position."""
        while True:
            try:
                await self._poll()
            except (*postgres.UNAVAILABLE, TimeoutError) as error:
                log.warning("cannot poll for new batches", extra=because(error))
            except Exception as error:
                # The next poll can succeed; without polls all listeners would hang.
                log.exception("polling for new batches failed", extra=because(error))
            await asyncio.sleep(POLL_SECONDS)

    async def _poll(self) -> None:
        if not self._has_begun.is_set():
            self._position = await change_feed.find_newest(self._pool)
            self._has_begun.set()
        elif await change_feed.find_newest(self._pool) != self._position:
            event = await self._read_since(self._position)
            self._position = event.position
            if event.has_changes:
                self._publish(event)

    async def _read_since(self, position: Position | None) -> Event:
        async with hour_queries.snapshot(self._pool) as connection:
            change = await change_feed.read_changes(connection, position)
            totals = None
            if change.hours is not None:
                totals = await hour_queries.get_hours(connection, change.hours)
        return Event(position=change.position, watermark=change.watermark, hours=totals)

    def _publish(self, event: Event) -> None:
        self._events.append(event)
        self._published += 1
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
    def reserve_slot(self) -> Iterator[None]:
        """Count a listener while inside. Raises TooManyListeners."""
        if self._listeners >= LISTENERS_MAX:
            raise TooManyListeners
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1

    @contextmanager
    def reserve_visitor_slot(self) -> Iterator[None]:
        """Count a listener without a token while inside. Raises TooManyListeners."""
        if self._visitors >= VISITORS_MAX:
            raise TooManyListeners
        with self.reserve_slot():
            self._visitors += 1
            try:
                yield
            finally:
                self._visitors -= 1

    async def events(self, position: Position | None) -> AsyncGenerator[Event, None]:
        """The changes after the position, and then new ones as they are committed.

        The stream ends after `seconds_max`, when the feed is closed or the database unavailable,
        and for a listener that is EVENTS_KEPT_MAX behind. A listener that reconnects with its last
        position misses nothing.
        """
        deadline = time.monotonic() + self._seconds_max
        await wait(self._has_begun, self._seconds_max)
        # Taken before the read: events from here on begin at what the feed saw before.
        read = self._published
        event = None if self._is_closed else await self._read_missed(position)
        if event is None:
            return
        if event.has_changes:
            yield event
        position = event.position
        while await self._has_more(read, deadline):
            kept_from = self._published - len(self._events)
            if read < kept_from:
                log.warning(
                    "disconnecting a listener that is more than %d events behind", EVENTS_KEPT_MAX
                )
                return
            event = self._events[read - kept_from]
            read += 1
            if reaches(position, event.position):
                continue
            if (
                event.hours is None
            ):  # unknown from the feed's position, but perhaps not from this one
                event = await self._read_missed(position)
            if event is None:
                return
            if event.has_changes:
                yield event
            position = event.position

    async def _read_missed(self, position: Position | None) -> Event | None:
        """The changes since the position; None when the database is unavailable."""
        try:
            return await self._read_since(position)
        except (*postgres.UNAVAILABLE, TimeoutError) as error:
            log.warning("cannot read the changes for a listener", extra=because(error))
            return None

    async def _has_more(self, read: int, deadline: float) -> bool:
        while not self._is_closed and self._published <= read:
            seconds_left = deadline - time.monotonic()
            if seconds_left <= 0:
                return False
            await wait(self._news, seconds_left)
        return not self._is_closed


def reaches(position: Position | None, other: Position | None) -> bool:
    """Whether the position includes the other one."""
    return position is not None and other is not None and position.reaches(other)


@asynccontextmanager
async def open_feed(pool: asyncpg.Pool, seconds_max: float) -> AsyncIterator[Feed]:
    """A feed that polls for new batches until the end."""
    feed = Feed(pool, seconds_max)
    polling = asyncio.create_task(feed.run())
    try:
        yield feed
    finally:
        feed.close()
        polling.cancel()
        await asyncio.wait([polling])
