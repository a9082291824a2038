"""Random interleavings of the credit saga: commands, deliveries, repeats, deaths, in any order."""

import asyncio
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import ClassVar, TypeVar
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from shared.runtime.failpoints import Failpoint
from verification.saga.world import DrivenWorker, Services, World

T = TypeVar("T")

LIMIT = Decimal("100.00")
AMOUNTS = [Decimal("30.00"), Decimal("45.50"), Decimal("69.99"), Decimal("100.01")]
LIMITS = [Decimal("50.00"), Decimal("100.00"), Decimal("150.00")]
USERS = 2
DELIVERED_MAX = 4
DEATHS = [
    Failpoint.RECORDS_TAKEN_IN_HAND,
    Failpoint.EFFECTS_WRITTEN,
    Failpoint.EFFECTS_COMMITTED,
]

users = st.integers(0, USERS - 1)
orders = st.integers(0, 9)
counts = st.integers(1, DELIVERED_MAX)
workers = st.sampled_from(["users_worker", "orders_worker"])
deaths = st.sampled_from(DEATHS)


class Saga(RuleBasedStateMachine):
    """The caller sets `services`, opened in `runner`, before a run."""

    services: ClassVar[Services]
    runner: ClassVar[asyncio.Runner]
    counted: ClassVar[Callable[[], None]] = lambda: None

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.services)

    def do(self, work: Awaitable[T]) -> T:
        async def done() -> T:
            return await work

        return self.runner.run(done())

    @initialize()
    def begin(self) -> None:
        for _ in range(USERS):
            self.do(self.world.register(LIMIT))

    def user(self, number: int) -> UUID:
        return self.world.user_ids[number]

    def worker(self, name: str) -> DrivenWorker:
        worker: DrivenWorker = getattr(self.world, name)
        return worker

    @rule(user=users, amount=st.sampled_from(AMOUNTS))
    def place(self, user: int, amount: Decimal) -> None:
        self.do(self.world.place(self.user(user), amount))

    @rule(order=orders)
    def cancel(self, order: int) -> None:
        if placed := self.world.order_ids:
            self.do(self.world.cancel(placed[order % len(placed)]))

    @rule(order=orders)
    def time_out(self, order: int) -> None:
        if placed := self.world.order_ids:
            self.do(self.world.time_out(placed[order % len(placed)]))

    @rule(user=users)
    def delete(self, user: int) -> None:
        self.do(self.world.delete(self.user(user)))

    @rule(user=users, limit=st.sampled_from(LIMITS))
    def change_limit(self, user: int, limit: Decimal) -> None:
        self.do(self.world.change_limit(self.user(user), limit))

    @rule(worker=workers, count=counts)
    def deliver(self, worker: str, count: int) -> None:
        self.do(self.deliver_to_all(worker, count, None))

    @rule(worker=workers, count=counts, dies_at=deaths)
    def deliver_to_a_dying_worker(self, worker: str, count: int, dies_at: Failpoint) -> None:
        self.do(self.deliver_to_all(worker, count, dies_at))

    async def deliver_to_all(self, worker: str, count: int, dies_at: Failpoint | None) -> None:
        await self.world.publish()
        for user_id in self.world.user_ids:
            await self.world.deliver(self.worker(worker), user_id, count, dies_at)

    @rule(worker=workers, again=counts, count=counts)
    def deliver_again(self, worker: str, again: int, count: int) -> None:
        """The last messages are delivered again, all of them or some."""
        for user_id in self.world.user_ids:
            self.world.deliver_again(self.worker(worker), user_id, again)
        self.do(self.deliver_to_all(worker, min(again, count), None))

    @rule(worker=workers, user=users, count=counts)
    def publish_again(self, worker: str, user: int, count: int) -> None:
        self.do(self.world.publish())
        self.world.publish_again(self.worker(worker).topic, self.user(user), count)

    @rule(user=users, count=counts, order=orders)
    def deliver_while_an_order_is_cancelled(self, user: int, count: int, order: int) -> None:
        """Concurrently: one of them can lose the race for a stream, and decides again."""
        self.do(self.run_concurrently(user, count, order))

    async def run_concurrently(self, user: int, count: int, order: int) -> None:
        await self.world.publish()
        placed, user_id = self.world.order_ids, self.user(user)
        work = [
            self.world.deliver(self.world.users_worker, user_id, count),
            self.world.deliver(self.world.orders_worker, user_id, count),
            self.world.change_limit(user_id, LIMIT),
        ]
        if placed:
            work.append(self.world.cancel(placed[order % len(placed)]))
        await asyncio.gather(*work)

    @invariant()
    def the_books_balance(self) -> None:
        assert self.do(self.world.findings()) == []

    def teardown(self) -> None:
        """At the end every order is decided, and only confirmed orders hold credit."""
        type(self).counted()
        self.do(self.end())

    async def end(self) -> None:
        await self.world.settle()
        assert await self.world.findings() == []
        confirmed: dict[UUID, Decimal] = {}
        for order_id in self.world.order_ids:
            order = await self.world.order(order_id)
            assert order.status != "pending"
            if order.status == "confirmed":
                confirmed[order_id] = order.amount
        held: dict[UUID, Decimal] = {}
        for user_id in self.world.user_ids:
            held |= (await self.world.user(user_id)).reserved
        assert held == confirmed
