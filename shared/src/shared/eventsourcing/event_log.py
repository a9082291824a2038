"""The history of one stream for people: each event as it was recorded, page by page."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
from pydantic import BaseModel, ConfigDict, Field

from shared.eventsourcing.errors import NotFound

READ = """
    SELECT version, event_id, type, data, metadata, recorded_at
    FROM events
    WHERE stream_id = $1 AND version > $2
    ORDER BY version
    LIMIT $3
"""

EXISTS = "SELECT EXISTS (SELECT FROM streams WHERE stream_id = $1)"

AN_EVENT: dict[str, Any] = {
    "version": 1,
    "event_id": "01936f2a-7b00-7000-8000-000000000004",
    "type": "something-happened",
    "recorded_at": "2016-11-11T00:00:01Z",
    "correlation_id": "01936f2a-7b00-7000-8000-000000000005",
    "causation_id": "01936f2a-7b00-7000-8000-000000000005",
    "actor": "01936f2a-7b00-7000-8000-000000000001",
    "trace_id": "0af7651916cd43dd8448eb211c80319c",
    "data": {},
}


class EventResponse(BaseModel):
    """`correlation_id` is the same in all that one request led to; `causation_id` names the message
    that led to this, or the request; `actor` is the subject of the request's token, or the service
    that reacted to a message; it is null in events of before it was recorded. `trace_id` is null
    when no trace was recorded."""

    version: int
    event_id: UUID
    type: str
    recorded_at: datetime
    correlation_id: UUID
    causation_id: UUID
    actor: str | None
    trace_id: str | None
    data: dict[str, Any] = Field(description="The event's own fields, by its type.")


class EventPage(BaseModel):
    """`next` is the `after` of the next page, null on the last one."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"events": [AN_EVENT], "next": 1}]})

    events: Sequence[EventResponse]
    next: int | None


async def read_page(
    pool: asyncpg.Pool, stream_id: UUID, *, after: int, limit: int, unknown: str
) -> EventPage:
    """The events of a stream behind version `after`, oldest first.

    Raises:
        NotFound: there is no such stream; `unknown` is the code.
    """
    events = [to_event_response(row) for row in await pool.fetch(READ, stream_id, after, limit)]
    if not events and not await pool.fetchval(EXISTS, stream_id):
        raise NotFound(unknown, "nothing was ever recorded under this id")
    return EventPage(events=events, next=events[-1].version if len(events) == limit else None)


def to_event_response(row: asyncpg.Record) -> EventResponse:
    return EventResponse(
        version=row["version"],
        event_id=row["event_id"],
        type=row["type"],
        recorded_at=row["recorded_at"],
        data=json.loads(row["data"]),
        **{"actor": None, "trace_id": None} | json.loads(row["metadata"]),
    )
