"""Each way in which an order can end, and the credit that is reserved then: traps T12, T13, T15."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from decimal import Decimal
from uuid import UUID

import pytest

from local_stack.testing import Databases
from shared.runtime.failpoints import Failpoint
from shared.runtime.identifiers import new_id
from users_svc.user import Deleted, require_active
from verification.saga.world import World, open_services

LIMIT = Decimal("10000.00")
DEAR, CHEAP, BEYOND = Decimal("5388.88"), Decimal("4888.88"), Decimal("10000.01")
NOTHING = Decimal("0.00")

Story = Callable[[World, UUID], Awaitable[UUID]]
"""What happens to an order of a user; returns the order's id."""


@pytest.fixture
async def world(databases: Databases) -> AsyncIterator[World]:
    creating = [databases.create("shared", package) for package in ("users_svc", "orders_svc")]
    users, orders = [await asyncio.to_thread(each.__enter__) for each in creating]
    async with open_services(users, orders) as services:
        yield World(services)
    for each in creating:
        await asyncio.to_thread(each.__exit__, None, None, None)


async def confirmed(world: World, user: UUID) -> UUID:
    order = await world.place(user, DEAR)
    await world.settle()
    return order


async def beyond_the_limit(world: World, user: UUID) -> UUID:
    order = await world.place(user, BEYOND)
    await world.settle()
    return order


async def of_a_stranger(world: World, user: UUID) -> UUID:
    stranger = new_id()
    world.user_ids.append(stranger)
    order = await world.place(stranger, DEAR)
    await world.settle()
    return order


async def of_a_deleted_user(world: World, user: UUID) -> UUID:
    """Placed before the deletion, but consumed by users-svc after it."""
    order = await world.place(user, DEAR)
    await world.delete(user)
    await world.settle()
    return order


async def never_answered(world: World, user: UUID) -> UUID:
    """Trap T13: an overdue order is rejected, and a later reservation is released."""
    order = await world.place(user, DEAR)
    await world.time_out(order)
    await world.settle()
    return order


async def answered_too_late(world: World, user: UUID) -> UUID:
    """The credit is reserved, but the order times out before orders-svc consumes that."""
    order = await world.place(user, DEAR)
    await consume_the_order(world, user)
    await world.time_out(order)
    await world.settle()
    return order


async def cancelled_before_the_answer(world: World, user: UUID) -> UUID:
    order = await world.place(user, DEAR)
    await consume_the_order(world, user)
    await world.cancel(order)
    await world.settle()
    return order


async def cancelled_after_the_confirmation(world: World, user: UUID) -> UUID:
    order = await confirmed(world, user)
    await world.cancel(order)
    await world.settle()
    return order


async def cancelled_after_the_user_was_deleted(world: World, user: UUID) -> UUID:
    order = await confirmed(world, user)
    await world.delete(user)
    assert isinstance(await world.user(user), Deleted)
    await world.cancel(order)
    await world.settle()
    return order


async def consume_the_order(world: World, user: UUID) -> None:
    await world.publish()
    await world.deliver(world.users_worker, user, 1)


ENDS: list[tuple[Story, str, str | None, Decimal]] = [
    (confirmed, "confirmed", None, DEAR),
    (beyond_the_limit, "rejected", "insufficient-credit", NOTHING),
    (of_a_stranger, "rejected", "unknown-user", NOTHING),
    (of_a_deleted_user, "rejected", "user-deleted", NOTHING),
    (never_answered, "rejected", "timed-out", NOTHING),
    (answered_too_late, "rejected", "timed-out", NOTHING),
    (cancelled_before_the_answer, "cancelled", "changed-my-mind", NOTHING),
    (cancelled_after_the_confirmation, "cancelled", "changed-my-mind", NOTHING),
    (cancelled_after_the_user_was_deleted, "cancelled", "changed-my-mind", NOTHING),
]

ends = pytest.mark.parametrize(
    ("story", "status", "reason", "reserved"), ENDS, ids=lambda each: getattr(each, "__name__", "")
)


@ends
async def test_trap_t12_each_end_of_an_order_reserves_what_it_must_and_no_cent_more(
    world: World, story: Story, status: str, reason: str | None, reserved: Decimal
) -> None:
    user = await world.register(LIMIT)

    order = await story(world, user)

    decided = await world.order(order)
    assert (decided.status, decided.reason) == (status, reason)
    assert (await world.user(user)).reserved_credit == reserved
    assert await world.findings() == []


@ends
async def test_trap_t12_also_when_every_message_is_delivered_again(
    world: World, story: Story, status: str, reason: str | None, reserved: Decimal
) -> None:
    user = await world.register(LIMIT)
    order = await story(world, user)

    for worker in (world.users_worker, world.orders_worker):
        world.deliver_again(worker, user, count=100)
    await world.settle()

    assert (await world.order(order)).status == status
    assert (await world.user(user)).reserved_credit == reserved
    assert await world.findings() == []


async def test_trap_t13_no_order_stays_pending(world: World) -> None:
    """The time-out stands, whether the late decision grants or refuses the credit."""
    user = await world.register(LIMIT)
    orders = [await world.place(user, amount) for amount in (DEAR, BEYOND)]

    for order in orders:
        await world.time_out(order)
    await world.settle()

    decided = [await world.order(order) for order in orders]
    assert [(each.status, each.reason) for each in decided] == [("rejected", "timed-out")] * 2
    assert (await world.user(user)).reserved_credit == NOTHING


@pytest.mark.parametrize("story", [answered_too_late, cancelled_before_the_answer])
async def test_trap_t15_a_failure_after_the_reservation_ends_in_a_release(
    world: World, story: Story
) -> None:
    user = await world.register(LIMIT)

    order = await story(world, user)

    types = [dict(record.headers)["ce_type"] for record in world.topics["users.v1", user]]
    assert types == [b"user-registered", b"credit-reserved", b"credit-released"]
    assert order not in (await world.user(user)).reserved


@pytest.mark.parametrize(
    "dies_at",
    [
        Failpoint.RECORDS_TAKEN_IN_HAND,
        Failpoint.EFFECTS_WRITTEN,
        Failpoint.EFFECTS_COMMITTED,
    ],
)
@pytest.mark.parametrize("worker", ["users_worker", "orders_worker"])
async def test_trap_t15_a_death_at_any_step_neither_loses_nor_doubles_a_release(
    world: World, worker: str, dies_at: Failpoint
) -> None:
    user = await world.register(LIMIT)
    order = await confirmed(world, user)
    await world.cancel(order)
    await world.publish()

    await world.deliver(getattr(world, worker), user, 10, dies_at)
    await world.settle()

    assert require_active(await world.user(user)).available_credit == LIMIT
    assert await world.findings() == []


async def test_the_money_vectors(world: World) -> None:
    user = await world.register(LIMIT)

    first = await confirmed(world, user)
    assert require_active(await world.user(user)).available_credit == Decimal("4611.12")
    second = await world.place(user, CHEAP)
    await world.settle()
    assert (await world.order(second)).reason == "insufficient-credit"
    await world.cancel(first)
    await world.settle()
    assert require_active(await world.user(user)).available_credit == LIMIT
