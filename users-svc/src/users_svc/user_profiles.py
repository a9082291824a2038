"""Read model: users with their address and credit, from users.v1."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from typing import assert_never
from uuid import UUID

import asyncpg

from shared.messaging.messages import Message
from shared.projections.read_models import ReadModel
from shared.runtime.postgres import Connection
from users_svc.contract import CODEC, TOPIC, PublicUserEvent, UserRegistered
from users_svc.events import (
    CreditRefused,
    CreditReleased,
    CreditReserved,
    UserCreditLimitChanged,
    UserDeleted,
    UserMoved,
)

TYPES = tuple(name for name in CODEC.names if name != "credit-refused")
"""A refusal changes nothing in the table."""

CREDIT_TYPES = ("credit-reserved", "credit-released")

REGISTERED = """
    INSERT INTO user_profiles (user_id, address, gender, credit_limit, reserved_credit, deleted,
                               effective_at, version)
    VALUES ($1, $2, $3, $4, 0, false, $5, $6)
    ON CONFLICT DO NOTHING
"""

# A move that is effective before the last known one does not change the present address. Times
# are compared in milliseconds.
MOVED = """
    UPDATE user_profiles
    SET address = CASE WHEN date_trunc('milliseconds', effective_at) <= $2 THEN $3 ELSE address END,
        effective_at = greatest(effective_at, $2),
        version = $4
    WHERE user_id = $1 AND version < $4
"""

LIMIT_CHANGED = """
    UPDATE user_profiles
    SET credit_limit = $2, version = $3
    WHERE user_id = $1 AND version < $3
"""

# Many changes of many users; of those that a user has already nothing is added again.
RESERVED = """
    UPDATE user_profiles
    SET reserved_credit = reserved_credit + added.amount, version = added.version
    FROM (
        SELECT user_id, sum(change.amount) AS amount, max(change.version) AS version
        FROM (
            SELECT DISTINCT *
            FROM unnest($1::uuid[], $2::numeric[], $3::integer[])
                AS delivered (user_id, amount, version)
        ) AS change
        JOIN user_profiles AS known USING (user_id)
        WHERE change.version > known.version
        GROUP BY user_id
    ) AS added
    WHERE user_profiles.user_id = added.user_id
"""

DELETED = """
    UPDATE user_profiles
    SET deleted = true, version = $2
    WHERE user_id = $1 AND version < $2
"""

# One statement for each index: a statement is planned without its values (`postgres.open_pool`).
# Places were once stored as they were typed, composed or not.
LIST, LIST_AT_ADDRESS = (
    f"""
    SELECT user_id, address, gender, credit_limit, reserved_credit
    FROM user_profiles
    WHERE NOT deleted
      AND {condition}
      AND user_id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
    ORDER BY user_id
    LIMIT $3
    """  # noqa: S608
    for condition in ("$1::text IS NULL", "address IN ($1::text, normalize($1, NFD))")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserProfile:
    user_id: UUID
    address: str
    gender: str
    credit_limit: Decimal
    reserved_credit: Decimal


async def project(connection: Connection, messages: Sequence[Message]) -> None:
    """Apply messages of users.v1. Idempotent; ignores messages older than the row.

    Changes of credit that follow each other are applied at once: they are most of the messages.
    """
    for is_credit, run in groupby(messages, lambda message: message.type in CREDIT_TYPES):
        if is_credit:
            await change_credit(connection, list(run))
        else:
            for message in run:
                await apply(connection, message)


async def change_credit(connection: Connection, messages: Sequence[Message]) -> None:
    events = [CODEC.read(message) for message in messages]
    await connection.execute(
        RESERVED,
        [event.user_id for event in events],
        [to_change(event) for event in events],
        [message.stream_version for message in messages],
    )


def to_change(event: PublicUserEvent) -> Decimal:
    """What an event adds to the reserved credit."""
    match event:
        case CreditReserved():
            return event.amount
        case CreditReleased():
            return -event.amount
        case _:
            raise AssertionError(f"{event} changes no credit")


async def apply(connection: Connection, message: Message) -> None:
    event, version = CODEC.read(message), message.stream_version
    user = event.user_id
    match event:
        case UserRegistered():
            await connection.execute(
                REGISTERED,
                user,
                event.address,
                event.gender,
                event.credit_limit,
                event.effective_at,
                version,
            )
        case UserMoved():
            await connection.execute(MOVED, user, event.effective_at, event.address, version)
        case UserCreditLimitChanged():
            await connection.execute(LIMIT_CHANGED, user, event.credit_limit, version)
        case CreditReserved() | CreditReleased():
            await change_credit(connection, [message])
        case CreditRefused():
            pass
        case UserDeleted():
            await connection.execute(DELETED, user, version)
        case _:
            assert_never(event)


READ_MODEL = ReadModel(name="user_profiles", topic=TOPIC, types=TYPES, project=project)


async def list_users(
    pool: asyncpg.Pool, *, address: str | None, after: UUID | None, limit: int
) -> Sequence[UserProfile]:
    """Users by id, those after the cursor `after`; without deleted ones."""
    statement = LIST if address is None else LIST_AT_ADDRESS
    rows = await pool.fetch(statement, address, after, limit)
    return [UserProfile(**row) for row in rows]
