"""The credit of one order: the decisions on it, and whether its messages are parked."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg
from pydantic import BaseModel, ConfigDict

from shared.eventsourcing.event_log import AN_EVENT, EventResponse, to_event_response
from shared.inbox import parked
from shared.messaging.messages import StreamKey
from users_svc.order_messages import TOPIC

CONSUMER = "users-worker"

DECISIONS = """
    SELECT version, event_id, type, data, metadata, recorded_at
    FROM events
    WHERE stream_id = $1
      AND type IN ('credit-reserved', 'credit-refused', 'credit-released')
      AND data->>'order_id' = $2::uuid::text
    ORDER BY version
"""


class ParkedResponse(BaseModel):
    """The order's messages are parked since `at`, and wait for a redrive."""

    reason: str
    at: datetime


class OrderCreditResponse(BaseModel):
    """`decisions` are the user's events about the order, oldest first, if any."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "order_id": "01936f2a-7b00-7000-8000-000000000003",
                    "decisions": [AN_EVENT | {"type": "credit-reserved"}],
                    "parked": {"reason": "unknown type", "at": "2016-11-11T00:00:02Z"},
                }
            ]
        }
    )

    order_id: UUID
    decisions: Sequence[EventResponse]
    parked: ParkedResponse | None


async def read(pool: asyncpg.Pool, user_id: UUID, order_id: UUID) -> OrderCreditResponse:
    """The user's events about an order, and whether the order's own stream is parked."""
    decisions = await pool.fetch(DECISIONS, user_id, order_id)
    return OrderCreditResponse(
        order_id=order_id,
        decisions=[to_event_response(row) for row in decisions],
        parked=await find_parked(pool, user_id, order_id),
    )


async def find_parked(pool: asyncpg.Pool, user_id: UUID, order_id: UUID) -> ParkedResponse | None:
    """None also for the order of another user, of which the caller must not learn."""
    stream = StreamKey(TOPIC, order_id)
    messages = await parked.list_messages(pool, CONSUMER, stream, messages_max=1)
    if not messages or messages[0].record.key != str(user_id).encode():
        return None
    found = await parked.find_stream(pool, CONSUMER, stream)
    return ParkedResponse(reason=found.kind, at=found.parked_at) if found else None
