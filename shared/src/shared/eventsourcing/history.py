"""All events of a service from the first one on, as they left it.

A rebuild and a replay read them here. The records are those that the outbox held, to the byte, but
for the trace, which was over long ago.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import asyncpg

from shared.eventsourcing.event_store import EventStore, load_metadata
from shared.messaging import messages
from shared.messaging.messages import Message, PublicRecord, RecordedEvent
from shared.messaging.records import IncomingRecord, parse_message

EVENTS_PER_PAGE = 1_000
POSITION_MAX = 2**63 - 1
SETTLED_SECONDS_MAX = 60
SETTLED_POLL_SECONDS = 0.02

Stores = Sequence[EventStore[Any]]
"""All stores of a service, one for each category of streams."""

COLUMNS = """
    position, stream_id, events.version, category, event_id, type, schema_version, data, metadata,
    recorded_at
"""

PAGE = f"""
    SELECT {COLUMNS}
    FROM events JOIN streams USING (stream_id)
    WHERE position > $1 AND position <= $2
    ORDER BY position
    LIMIT $3
"""  # noqa: S608

BY_VERSION = f"""
    SELECT {COLUMNS}
    FROM unnest($1::uuid[], $2::integer[]) AS wanted (stream_id, version)
    JOIN events USING (stream_id, version)
    JOIN streams USING (stream_id)
"""  # noqa: S608

NEWEST = "SELECT coalesce(max(position), 0) FROM events"

NEXT_TRANSACTION = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"

ALL_BEFORE_ARE_OVER = "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= $1::text::xid8"


class NotSettled(Exception):
    """A transaction that may be writing events has been open for too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastEvent:
    """An event with the record as which it left; None if it stayed inside."""

    position: int
    recorded: RecordedEvent[Any]
    record: PublicRecord | None


class History:
    """The events of all `stores`, which are the service's, on a connection of the caller."""

    def __init__(self, connection: asyncpg.Connection, stores: Stores) -> None:
        self._connection = connection
        self._stores = {store.category: store for store in stores}

    async def read_pages(
        self, after: int = 0, up_to: int = POSITION_MAX
    ) -> AsyncIterator[Sequence[PastEvent]]:
        """Events by position, which respects the order of versions in each stream.

        Only what no open transaction can add to is complete: events up to `settled`, those of one
        snapshot, or all while the table `streams` is locked.
        """
        while rows := await self._connection.fetch(PAGE, after, up_to, EVENTS_PER_PAGE):
            yield await self._with_previous_versions([self._past_event(row) for row in rows])
            after = rows[-1]["position"]

    async def read_settled_position(self) -> int:
        """The position of the newest event, once no more can appear before it.

        A writer takes its positions before it commits, and its transaction id before those.

        Raises:
            NotSettled: a transaction of before is open after SETTLED_SECONDS_MAX still.
        """
        newest: int = await self._connection.fetchval(NEWEST)
        bound = await self._connection.fetchval(NEXT_TRANSACTION)
        try:
            async with asyncio.timeout(SETTLED_SECONDS_MAX):
                while True:
                    if await self._connection.fetchval(ALL_BEFORE_ARE_OVER, bound):
                        return newest
                    await asyncio.sleep(SETTLED_POLL_SECONDS)
        except TimeoutError:
            raise NotSettled(NotSettled.__doc__) from None

    def _past_event(self, row: asyncpg.Record) -> PastEvent:
        store = self._stores[row["category"]]
        recorded = store.to_recorded_event(row)
        record = store.to_public_record(recorded, load_metadata(row["metadata"]))
        return PastEvent(position=row["position"], recorded=recorded, record=record)

    async def _with_previous_versions(self, page: Sequence[PastEvent]) -> Sequence[PastEvent]:
        """The page with the header that names the version of the stream that left before."""
        firsts: dict[UUID, int] = {}
        for event in page:
            firsts.setdefault(event.recorded.stream_id, event.recorded.version)
        left = await self._left_before(firsts)
        return [add_previous_version(event, left) for event in page]

    async def _left_before(self, firsts: Mapping[UUID, int]) -> dict[UUID, int]:
        """For each stream the last version below the given one that left the service, or 0.

        Goes back event by event: most streams begin on the page, and few events stay inside.
        """
        left: dict[UUID, int] = {}
        looked_at = {stream_id: version - 1 for stream_id, version in firsts.items()}
        while looked_at:
            rows = await self._connection.fetch(
                BY_VERSION, list(looked_at), list(looked_at.values())
            )
            stayed = {row["stream_id"] for row in rows if self._past_event(row).record is None}
            left |= {each: version for each, version in looked_at.items() if each not in stayed}
            looked_at = {each: looked_at[each] - 1 for each in stayed}
        return left


def add_previous_version(event: PastEvent, left: dict[UUID, int]) -> PastEvent:
    """The event with its last header; `left` holds the last published version of each stream."""
    if event.record is None:
        return event
    stream_id = event.recorded.stream_id
    previous, left[stream_id] = left[stream_id], event.recorded.version
    headers = [*event.record.headers, (messages.PREVIOUS_VERSION, b"%d" % previous)]
    return replace(event, record=replace(event.record, headers=headers))


def to_message(event: PastEvent) -> Message | None:
    """The message that consumers read; its offset is the event's position."""
    record = event.record
    if record is None:
        return None
    return parse_message(
        IncomingRecord(
            topic=record.topic,
            partition=record.partition,
            offset=event.position,
            key=record.key,
            value=record.value,
            headers=record.headers,
        )
    )
