"""Read model: who lives where. Follows users.v1."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from shared.messages import Message
from shared.postgres import Connection
from users_svc.contract import CODEC, UserMoved, UserRegistered

# A repeated or late event changes nothing. A move that took effect before the last one known does
# not change where the user lives now, but its version still counts as seen.
PROJECT = """
    INSERT INTO user_profiles AS profile (user_id, address, gender, effective_at, version)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (user_id) DO UPDATE
    SET address = CASE WHEN excluded.effective_at >= profile.effective_at
                       THEN excluded.address ELSE profile.address END,
        effective_at = greatest(excluded.effective_at, profile.effective_at),
        version = excluded.version
    WHERE profile.version < excluded.version
"""

LIST = """
    SELECT user_id, address, gender, version
    FROM user_profiles
    WHERE ($1::text IS NULL OR address = $1)
      AND ($2::uuid IS NULL OR user_id > $2)
    ORDER BY user_id
    LIMIT $3
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserProfile:
    user_id: UUID
    address: str
    gender: str
    version: int


async def project(connection: Connection, message: Message) -> None:
    """Take one `user-registered` or `user-moved` message; twice is once, late is nothing."""
    event = CODEC.decode(message.type, message.data)
    assert isinstance(event, UserRegistered | UserMoved)
    await connection.execute(
        PROJECT,
        event.user_id,
        event.address,
        event.gender,
        event.effective_at,
        message.stream_version,
    )


async def list_users(
    pool: asyncpg.Pool, *, address: str | None, after: UUID | None, limit: int
) -> Sequence[UserProfile]:
    """Users by id, those after the cursor `after`."""
    rows = await pool.fetch(LIST, address, after, limit)
    return [UserProfile(**row) for row in rows]
