"""An event that is lost behind the last one of its stream is seen, by nothing but the counts."""

import asyncio
import time

import asyncpg
import pytest

from local_stack.postgres import SUPERUSER
from test_support.system.clients import Hometown
from test_support.system.eventually import eventually
from test_support.system.observed import read_observed
from test_support.system.stack import Stack

SECONDS_MAX = 180
"""The observer compares each half minute."""

COMPARED_SECONDS = 35
"""In which it has compared once more."""

CONSUMERS = ("users-worker", "orders-worker")

LOSE = "DELETE FROM outbox WHERE key = convert_to($1, 'UTF8') RETURNING 1"


def read_at_rest(stack: Stack, consumer: str) -> float:
    """The difference that stays: other tests write records past the event stores."""
    seen: list[float | None] = []

    def stays() -> bool:
        seen.append(read_observed(stack, "hometown_delivery_difference", consumer=consumer))
        time.sleep(COMPARED_SECONDS)
        return seen[-1] is not None and seen[-1:] == seen[-2:-1]

    eventually(stays, bool, what=f"{consumer} at rest", seconds_max=SECONDS_MAX)
    assert seen[-1] is not None
    return seen[-1]


async def lose(dsn: str, user_id: str) -> int:
    """Take away what waits in the outbox of this user: the number of rows."""
    connection = await asyncpg.connect(dsn)
    try:
        return len(await connection.fetch(LOSE, user_id))
    finally:
        await connection.close()


@pytest.mark.long
def test_an_event_that_is_lost_stays_a_difference_until_it_is_published_again(
    stack: Stack, hometown: Hometown
) -> None:
    def difference(consumer: str) -> float | None:
        return read_observed(stack, "hometown_delivery_difference", consumer=consumer)

    at_rest = {consumer: read_at_rest(stack, consumer) for consumer in CONSUMERS}

    def wait_for(more: float, what: str) -> None:
        for consumer in CONSUMERS:
            eventually(
                lambda consumer=consumer: difference(consumer),  # type: ignore[misc]
                lambda seen, consumer=consumer: seen == at_rest[consumer] + more,  # type: ignore[misc]
                what=f"{what}: {consumer}, {at_rest[consumer]} + {more}",
                seconds_max=SECONDS_MAX,
            )

    with stack.stopped("users-relay"):
        joan = hometown.register_user(
            name="Joan", address="BJ", gender="female", credit_limit="1.00"
        )
        assert asyncio.run(lose(stack.dsn(SUPERUSER, "users"), joan["user_id"])) == 1

    wait_for(1, "one event is missing")
    assert read_observed(stack, "hometown_consumer_lag", consumer="users-worker") == 0
    assert read_observed(stack, "hometown_consumer_state", consumer="users-worker") == 0

    stack.make_output("replay", "name=users")
    wait_for(0, "it is published again")
