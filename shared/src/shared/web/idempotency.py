"""Repeatable requests: the answer to a request is kept under its key, and given again."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from shared.messaging.messages import IdempotencyKey, StoredResponse
from shared.runtime import postgres
from shared.runtime.postgres import Connection
from shared.web.problems import HttpProblem

KEPT = timedelta(hours=72)
"""How long a request can be repeated."""
FORGOTTEN_MAX = 10_000
"""Answers that one round forgets."""
FORGET_SECONDS_MAX = 5.0

LOOK_UP = """
    SELECT fingerprint, status, headers, body
    FROM idempotency_keys
    WHERE scope = $1 AND key = $2
"""

FORGET = """
    DELETE FROM idempotency_keys
    WHERE ctid = ANY(ARRAY(
        SELECT ctid
        FROM idempotency_keys
        WHERE recorded_at < $1
        LIMIT $2
    ))
"""


@dataclass(eq=False)
class Replay(Exception):
    """The request was answered before: this answer again."""

    answer: StoredResponse


async def raise_if_answered(pool: asyncpg.Pool, key: IdempotencyKey) -> None:
    """Raises Replay with the stored answer, or 422 when the key named another request."""
    row = await pool.fetchrow(LOOK_UP, key.scope, key.key)
    if row is None:
        return
    if row["fingerprint"] != key.fingerprint:
        raise HttpProblem(
            422, "idempotency-key-reused", "this key was used for another request before"
        )
    raise Replay(
        StoredResponse(status=row["status"], headers=json.loads(row["headers"]), body=row["body"])
    )


async def forget(connection: Connection, now: datetime) -> None:
    """Remove answers that are older than KEPT, at most FORGOTTEN_MAX of them."""
    await postgres.attempt(connection, FORGET_SECONDS_MAX, FORGET, now - KEPT, FORGOTTEN_MAX)
