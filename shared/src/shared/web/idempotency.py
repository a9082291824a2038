"""Idempotent requests: the response is stored under the key of the request, and sent again."""

import asyncio
import json
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg

from shared.messaging.messages import IdempotencyKey, StoredResponse
from shared.runtime import postgres
from shared.runtime.logs import because
from shared.runtime.postgres import Connection
from shared.web.problems import HttpProblem

KEPT = timedelta(hours=72)
"""How long a request can be repeated."""
FORGOTTEN_MAX = 10_000
"""Responses that one round deletes."""
FORGET_SECONDS_MAX = 5.0
FORGET_PERIOD_SECONDS = 60.0

log = logging.getLogger(__name__)

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
    """The request was answered before; this is the stored response."""

    answer: StoredResponse


async def raise_if_answered(pool: asyncpg.Pool, key: IdempotencyKey) -> None:
    """Raises Replay with the stored response, or HttpProblem if the key is another request's."""
    row = await pool.fetchrow(LOOK_UP, key.scope, key.key)
    if row is None:
        return
    if row["fingerprint"] not in (key.fingerprint, key.former_fingerprint):
        raise HttpProblem(422, "idempotency-key-reused", "this key was used for another request")
    raise Replay(
        StoredResponse(status=row["status"], headers=json.loads(row["headers"]), body=row["body"])
    )


async def forget(connection: Connection, now: datetime) -> bool:
    """Delete responses that are older than KEPT, at most FORGOTTEN_MAX of them.

    Returns whether more of them can be left.
    """
    done = await postgres.attempt(connection, FORGET_SECONDS_MAX, FORGET, now - KEPT, FORGOTTEN_MAX)
    return done == f"DELETE {FORGOTTEN_MAX}"


async def forget_all(pool: asyncpg.Pool, now: datetime) -> None:
    """Rounds of `forget` until none is left, or one has to be given up.

    Between two rounds the connection is returned, for work that is waiting for one.
    """
    is_more_left = True
    while is_more_left:
        async with pool.acquire() as connection:
            is_more_left = await forget(connection, now)


async def forget_periodically(pool: asyncpg.Pool) -> None:
    """Housekeeping of a service's worker: `forget_all` every FORGET_PERIOD_SECONDS.

    Never returns. Several workers of a service can run it: each round is safe to repeat.
    """
    while True:
        try:
            await forget_all(pool, datetime.now(UTC))
        except postgres.UNAVAILABLE as error:
            log.warning("old responses are kept until the next round", extra=because(error))
        await asyncio.sleep(FORGET_PERIOD_SECONDS)
