"""Waiting until a stream grows: one query for all waiting requests, instead of one for each."""

import asyncio
import logging
from collections import defaultdict
from uuid import UUID

import asyncpg

from shared.runtime import postgres

log = logging.getLogger(__name__)

POLL_SECONDS = 0.02

GROWN = """
    SELECT wanted.stream_id, wanted.version
    FROM unnest($1::uuid[], $2::integer[]) AS wanted (stream_id, version)
    JOIN streams USING (stream_id)
    WHERE streams.version > wanted.version
"""


class StreamWatch:
    """Polls every POLL_SECONDS while a request waits, and not at all otherwise."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._waiting: dict[tuple[UUID, int], set[asyncio.Event]] = defaultdict(set)
        self._polling: asyncio.Task[None] | None = None
        self.is_closed = False

    def close(self) -> None:
        """Let all waiters go, so that the process can stop."""
        self.is_closed = True
        for events in self._waiting.values():
            for event in events:
                event.set()

    async def wait_until_newer(self, stream_id: UUID, version: int, seconds_max: float) -> bool:
        """Wait until the stream is past `version`; False when that took too long.

        Returns at once when the watch is closed.
        """
        if self.is_closed:
            return False
        event = asyncio.Event()
        wanted = (stream_id, version)
        self._waiting[wanted].add(event)
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll())
        try:
            async with asyncio.timeout(seconds_max):
                await event.wait()
            return not self.is_closed
        except TimeoutError:
            return False
        finally:
            self._waiting[wanted].discard(event)
            if not self._waiting[wanted]:
                del self._waiting[wanted]

    async def _poll(self) -> None:
        while self._waiting:
            try:
                await self._wake()
            except postgres.UNAVAILABLE as error:
                log.warning("cannot poll the versions of streams: %r", error)
            await asyncio.sleep(POLL_SECONDS)

    async def _wake(self) -> None:
        streams, versions = zip(*self._waiting, strict=True)
        for row in await self._pool.fetch(GROWN, streams, versions):
            for event in self._waiting.get((row["stream_id"], row["version"]), ()):
                event.set()
