"""Waiting until a stream grows: one query for all waiting requests, instead of one for each."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Generic, TypeVar
from uuid import UUID

from shared.eventsourcing.event_store import EventStore
from shared.messaging.messages import RecordedEvent
from shared.runtime import postgres
from shared.runtime.logs import because

E = TypeVar("E")

log = logging.getLogger(__name__)

POLL_SECONDS = 0.02


class StreamWatch(Generic[E]):
    """Reads new events every POLL_SECONDS while a request waits, and not at all otherwise."""

    def __init__(self, store: EventStore[E]) -> None:
        self._store = store
        self._waiting: dict[tuple[UUID, int], set[asyncio.Future[Sequence[RecordedEvent[E]]]]] = (
            defaultdict(set)
        )
        self._polling: asyncio.Task[None] | None = None
        self.is_closed = False

    def close(self) -> None:
        """Let all waiters go, so that the process can stop."""
        self.is_closed = True
        for waiters in self._waiting.values():
            for newer in waiters:
                if not newer.done():
                    newer.set_result(())

    async def wait_for_newer(
        self, stream_id: UUID, version: int, seconds_max: float
    ) -> Sequence[RecordedEvent[E]]:
        """The events of a stream after `version`, as soon as there are any, oldest first.

        None after `seconds_max`, and at once when the watch is closed.
        """
        if self.is_closed or seconds_max <= 0:
            return ()
        newer = asyncio.get_running_loop().create_future()
        wanted = (stream_id, version)
        self._waiting[wanted].add(newer)
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll())
        try:
            async with asyncio.timeout(seconds_max):
                found: Sequence[RecordedEvent[E]] = await newer
                return found
        except TimeoutError:
            return ()
        finally:
            self._waiting[wanted].discard(newer)
            if not self._waiting[wanted]:
                del self._waiting[wanted]

    async def _poll(self) -> None:
        while self._waiting:
            try:
                await self._wake()
            except postgres.UNAVAILABLE as error:
                log.warning("cannot read new events", extra=because(error))
            await asyncio.sleep(POLL_SECONDS)

    async def _wake(self) -> None:
        first_versions: dict[UUID, int] = {}
        for stream_id, version in self._waiting:
            first = first_versions.get(stream_id, version + 1)
            first_versions[stream_id] = min(first, version + 1)
        found = await self._store.read_from(first_versions)
        for (stream_id, version), waiters in self._waiting.items():
            events = [each for each in found.get(stream_id, ()) if each.version > version]
            for newer in waiters:
                if events and not newer.done():
                    newer.set_result(events)
