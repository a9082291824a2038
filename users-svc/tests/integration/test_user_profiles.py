"""The read model of users: messages once, twice and out of order; lists by place and page."""

import unicodedata
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import httpx

from shared.messaging.messages import Message
from shared.runtime.identifiers import new_id
from users_svc import user_profiles
from users_svc.bootstrap import Resources
from users_svc.contract import CODEC, PublicUserEvent, UserRegistered
from users_svc.events import (
    CreditReleased,
    CreditReserved,
    UserCreditLimitChanged,
    UserDeleted,
    UserMoved,
)

SINCE = datetime(2015, 12, 11, tzinfo=UTC)
JACK = UUID(int=1)


def registered(user_id: UUID = JACK, address: str = "BJ") -> UserRegistered:
    return UserRegistered(
        user_id=user_id,
        address=address,
        gender="male",
        credit_limit=Decimal("1.00"),
        effective_at=SINCE,
    )


def moved(address: str, days: int) -> UserMoved:
    at = SINCE + timedelta(days=days)
    return UserMoved(user_id=JACK, address=address, gender="male", effective_at=at)


def message(event: PublicUserEvent, version: int) -> Message:
    return Message(
        topic="users.v1",
        partition=0,
        offset=0,
        key=str(event.user_id),
        event_id=new_id(),
        type=CODEC.get_name(event),
        schema_version=1,
        stream_id=event.user_id,
        stream_version=version,
        previous_version=None,
        correlation_id=new_id(),
        time=SINCE,
        traceparent=None,
        data=CODEC.encode(event),
    )


async def follow(resources: Resources, *messages: Message) -> None:
    async with resources.pool.acquire() as connection:
        await user_profiles.project(connection, messages)


async def address_after(resources: Resources, *messages: Message) -> str:
    for each in messages:
        await follow(resources, each)
    [user] = await user_profiles.list_users(resources.pool, address=None, after=None, limit=10)
    return user.address


async def test_a_move_is_applied_once_however_often_and_late_it_is_delivered(
    resources: Resources,
) -> None:
    first, second = message(registered(), 1), message(moved("SH", 10), 2)

    assert await address_after(resources, first, first, second, second, first) == "SH"


async def test_a_move_that_is_announced_late_does_not_change_the_present_address(
    resources: Resources,
) -> None:
    late = message(moved("GZ", 5), 3)

    assert (
        await address_after(resources, message(registered(), 1), message(moved("SH", 10), 2), late)
        == "SH"
    )


async def test_of_two_moves_in_a_millisecond_the_last_announced_one_holds(
    resources: Resources,
) -> None:
    """As in the user's own state, and where orders are counted; old events can have finer times."""
    first, second = (
        replace(moved(address, 10), effective_at=SINCE + timedelta(days=10, microseconds=finer))
        for address, finer in (("SH", 900), ("GZ", 100))
    )
    story = [message(registered(), 1), message(first, 2), message(second, 3)]

    assert await address_after(resources, *story) == "GZ"


async def credit_after(resources: Resources, *events: PublicUserEvent) -> tuple[Decimal, Decimal]:
    """Limit and reserved credit after these events, each of them delivered twice."""
    for version, event in enumerate([registered(), *events], start=1):
        await follow(resources, message(event, version))
        await follow(resources, message(event, version))
    return await credit_of_jack(resources)


async def credit_of_jack(resources: Resources) -> tuple[Decimal, Decimal]:
    [user] = await user_profiles.list_users(resources.pool, address=None, after=None, limit=10)
    return user.credit_limit, user.reserved_credit


async def test_reserved_credit_is_exact_to_the_cent(resources: Resources) -> None:
    first, second = new_id(), new_id()
    limit = UserCreditLimitChanged(user_id=JACK, credit_limit=Decimal("10.00"))

    credit = await credit_after(
        resources,
        limit,
        CreditReserved(user_id=JACK, order_id=first, amount=Decimal("5.55")),
        CreditReserved(user_id=JACK, order_id=second, amount=Decimal("4.44")),
        CreditReleased(user_id=JACK, order_id=first, amount=Decimal("5.55")),
    )

    assert credit == (Decimal("10.00"), Decimal("4.44"))


async def test_messages_of_one_batch_are_applied_once_and_in_order(resources: Resources) -> None:
    orders = [new_id() for _ in range(3)]
    events: list[PublicUserEvent] = [
        registered(),
        CreditReserved(user_id=JACK, order_id=orders[0], amount=Decimal("1.00")),
        CreditReserved(user_id=JACK, order_id=orders[1], amount=Decimal("0.10")),
        UserCreditLimitChanged(user_id=JACK, credit_limit=Decimal("10.00")),
        CreditReleased(user_id=JACK, order_id=orders[0], amount=Decimal("1.00")),
        CreditReserved(user_id=JACK, order_id=orders[2], amount=Decimal("0.01")),
    ]
    story = [message(event, version) for version, event in enumerate(events, start=1)]
    await follow(resources, *story[:3])

    await follow(resources, *[each for each in story for _ in range(2)])

    assert await credit_of_jack(resources) == (Decimal("10.00"), Decimal("0.11"))


async def test_a_deleted_user_is_not_listed(resources: Resources) -> None:
    deleted = UserDeleted(user_id=JACK, effective_at=SINCE)
    for each in (message(registered(), 1), message(deleted, 2), message(registered(), 1)):
        await follow(resources, each)

    listed = await user_profiles.list_users(resources.pool, address=None, after=None, limit=10)
    assert listed == []


async def test_users_are_listed_by_place_and_page(
    client: httpx.AsyncClient, resources: Resources
) -> None:
    ids = sorted(new_id() for _ in range(3))
    for user_id in ids:
        await follow(resources, message(registered(user_id), 1))
    await follow(resources, message(registered(new_id(), "SH"), 1))

    first = (await client.get("/v1/users", params={"address": "bj", "limit": 2})).json()
    query = {"address": "bj", "limit": 2, "after": first["next"]}
    second = (await client.get("/v1/users", params=query)).json()

    listed = [user["user_id"] for user in first["users"] + second["users"]]
    assert listed == [str(user_id) for user_id in ids]
    assert second["next"] is None


async def test_users_are_found_by_a_place_that_was_stored_before_places_were_composed(
    client: httpx.AsyncClient, resources: Resources
) -> None:
    composed, decomposed = (unicodedata.normalize(form, "MÁLAGA") for form in ("NFC", "NFD"))
    for user_id, address in ((JACK, decomposed), (UUID(int=2), composed), (UUID(int=3), "MALAGA")):
        await follow(resources, message(registered(user_id, address), 1))

    for typed in (composed, decomposed, composed.lower()):
        found = (await client.get("/v1/users", params={"address": typed})).json()["users"]
        assert [user["user_id"] for user in found] == [str(JACK), str(UUID(int=2))]
