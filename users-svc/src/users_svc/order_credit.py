"""What became of one order here: its credit, or why that has to wait."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg
from pydantic import BaseModel, ConfigDict

from shared.event_log import AN_EVENT, EventResponse, response_of

CONSUMER = "users-worker"

DECISIONS = """
    SELECT version, event_id, type, data, metadata, recorded_at
    FROM events
    WHERE stream_id = $1
      AND type IN ('credit-reserved', 'credit-refused', 'credit-released')
      AND data->>'order_id' = $2::uuid::text
    ORDER BY version
"""

# Only a stream whose messages are this user's: nobody learns of others' orders.
PARKED = """
    SELECT reason, parked_streams.parked_at AS at
    FROM parked_streams
    JOIN parked_messages USING (consumer, stream_id)
    WHERE consumer = $3 AND stream_id = $2 AND key = convert_to($1::uuid::text, 'UTF8')
    LIMIT 1
"""


class ParkedResponse(BaseModel):
    """The order's messages wait for a person since `at`."""

    reason: str
    at: datetime


class OrderCreditResponse(BaseModel):
    """`decisions` are the user's events about the order, oldest first; none yet, or never any."""

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
    """What is recorded about an order in its user's stream, and whether its own stream waits."""
    decisions = await pool.fetch(DECISIONS, user_id, order_id)
    parked = await pool.fetchrow(PARKED, user_id, order_id, CONSUMER)
    return OrderCreditResponse(
        order_id=order_id,
        decisions=[response_of(row) for row in decisions],
        parked=ParkedResponse(**parked) if parked else None,
    )
