"""Following streams: one query for all requests that follow one, instead of one for each."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Generic, TypeVar
from uuid import UUID

from shared.eventsourcing.event_store import EventStore
from shared.messaging.messages import RecordedEvent
from shared.runtime import postgres

E = TypeVar("E")

log = logging.getLogger(__name__)

POLL_SECONDS = 0.03
"""Between two queries; so a first read takes up to as long."""


class StreamWatch(Generic[E]):
    """Reads new events every POLL_SECONDS while a request waits, and not at all otherwise."""

    def __init__(self, store: EventStore[E]) -> None:
        self._store = store
        self._reading: dict[UUID, list[asyncio.Future[Sequence[RecordedEvent[E]]]]] = {}
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

    async def read(self, stream_id: UUID) -> Sequence[RecordedEvent[E]]:
        """All events of a stream, oldest first, read together with those of other requests.

        Raises:
            UNAVAILABLE, PostgresError: the query cannot be executed.
        """
        if self.is_closed:
            return await self._store.read(stream_id)
        found = asyncio.get_running_loop().create_future()
        self._reading.setdefault(stream_id, []).append(found)
        self._begin_polling()
        events: Sequence[RecordedEvent[E]] = await found
        return events

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
        self._begin_polling()
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

    def _begin_polling(self) -> None:
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        while self._reading or self._waiting:
            await self._answer()
            try:
                await self._wake()
            except postgres.UNAVAILABLE as error:
                log.warning("cannot read new events: %r", error)
            await asyncio.sleep(POLL_SECONDS)

    async def _answer(self) -> None:
        """Read the streams whose events are not known; each reader gets the error, if any."""
        reading, self._reading = self._reading, {}
        if not reading:
            return
        events: dict[UUID, list[RecordedEvent[E]]] = {stream_id: [] for stream_id in reading}
        error: Exception | None = None
        try:
            for each in await self._store.read_many(reading):
                events[each.stream_id].append(each)
        except Exception as failure:
            error = failure
        for stream_id, readers in reading.items():
            for found in readers:
                if found.done():
                    continue
                if error is None:
                    found.set_result(events[stream_id])
                else:
                    found.set_exception(error)

    async def _wake(self) -> None:
        if not self._waiting:
            return
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
