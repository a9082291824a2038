"""Both services over two real databases, and the topics between them as lists.

A test decides what is otherwise left to chance: which message is delivered when, how often, to
which worker, and where that worker dies. Everything else is the services' own code.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

import asyncpg

import orders_svc.bootstrap
import orders_svc.worker
import users_svc.bootstrap
import users_svc.worker
from orders_svc.order.commands import CancelOrder, OrderCommand, PlaceOrder, RejectOrder
from orders_svc.order.events import OrderLine
from orders_svc.order.order import ORDER, TIMED_OUT, PlacedOrder, require_placed
from orders_svc.settings import OrdersSettings
from shared.eventsourcing.errors import NotFound, Refused
from shared.eventsourcing.handler import handle, load
from shared.inbox.consumer import Consumer
from shared.messaging import wire
from shared.messaging.messages import Metadata
from shared.messaging.records import IncomingRecord
from shared.messaging.wire import OutgoingRecord
from shared.runtime import failpoints, postgres
from shared.runtime.failpoints import Failpoint
from shared.runtime.identifiers import new_id
from users_svc import confirmed_orders
from users_svc.commands import ChangeCreditLimit, DeleteUser, RegisterUser, UserCommand
from users_svc.settings import UsersSettings
from users_svc.user import USER, Deleted, NotRegistered, Registered
from verification.audit import findings, read_books

SINCE = datetime(2016, 11, 11, tzinfo=UTC)
ITEM = UUID(int=1)

NEWS = """
    SELECT position, topic, partition, key, value, headers
    FROM outbox
    WHERE position > $1
    ORDER BY position
"""


class Killed(BaseException):
    """The process has died: no handler of Exception catches this."""


@contextmanager
def kill_at(deadly: Failpoint | None) -> Iterator[None]:
    """A process that reaches that failpoint inside the block dies there."""

    def hit(point: StrEnum) -> None:
        if point is deadly:
            raise Killed

    original, failpoints.hit = failpoints.hit, hit
    try:
        yield
    except Killed:
        pass
    finally:
        failpoints.hit = original


@dataclass(eq=False)
class DrivenWorker:
    """A worker and its position per key: the messages of a key are delivered in order, or again."""

    consumer: Consumer
    topic: str
    cursors: defaultdict[UUID, int] = field(default_factory=lambda: defaultdict(int))


@dataclass(eq=False)
class Services:
    """Both services, opened once; each world has users of its own."""

    users: users_svc.bootstrap.Resources
    orders: orders_svc.bootstrap.Resources
    users_position: int = 0
    orders_position: int = 0


async def refuse_dead_letters(letters: Sequence[OutgoingRecord]) -> None:
    raise AssertionError(f"no message is dead-lettered here: {letters}")


async def disable_synchronous_commit(dsn: str) -> None:
    """No commit waits for the disk: the machine is not switched off here."""
    connection = await asyncpg.connect(dsn)
    database = await connection.fetchval("SELECT quote_ident(current_database())")
    await connection.execute(f"ALTER DATABASE {database} SET synchronous_commit = off")
    await connection.close()


@asynccontextmanager
async def open_services(users_dsn: str, orders_dsn: str) -> AsyncIterator[Services]:
    """Both services over two empty databases."""
    await postgres.migrate(users_dsn, "shared", "users_svc")
    await postgres.migrate(orders_dsn, "shared", "orders_svc")
    await asyncio.gather(*(disable_synchronous_commit(dsn) for dsn in (users_dsn, orders_dsn)))
    async with AsyncExitStack() as stack:
        users = users_svc.bootstrap.open_resources(UsersSettings(database_url=users_dsn), "test")
        orders = orders_svc.bootstrap.open_resources(
            OrdersSettings(database_url=orders_dsn), "test"
        )
        yield Services(
            users=await stack.enter_async_context(users),
            orders=await stack.enter_async_context(orders),
        )


class World:
    """Some users, their orders, and all messages about them."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.user_ids: list[UUID] = []
        self.order_ids: list[UUID] = []
        self.taken: dict[UUID, int] = {}
        self.topics: defaultdict[tuple[str, UUID], list[IncomingRecord]] = defaultdict(list)
        self.users_worker = DrivenWorker(
            users_svc.worker.create_consumer(services.users, refuse_dead_letters), "orders.v1"
        )
        self.orders_worker = DrivenWorker(
            orders_svc.worker.create_consumer(services.orders, refuse_dead_letters), "users.v1"
        )

    async def register(self, limit: Decimal) -> UUID:
        user_id = new_id()
        command = RegisterUser(
            user_id=user_id,
            personal_data="sealed",
            address="BJ",
            gender="other",
            credit_limit=limit,
            effective_at=SINCE,
        )
        self.user_ids.append(user_id)
        await self.send_to_user(user_id, command)
        return user_id

    async def change_limit(self, user_id: UUID, limit: Decimal) -> None:
        await self.send_to_user(user_id, ChangeCreditLimit(credit_limit=limit))

    async def delete(self, user_id: UUID) -> None:
        known = await confirmed_orders.list_by_user(self.services.users.pool, user_id)
        await self.send_to_user(user_id, DeleteUser(confirmed_orders=known, effective_at=SINCE))

    async def place(self, user_id: UUID, amount: Decimal) -> UUID:
        order_id = new_id()
        self.order_ids.append(order_id)
        line = OrderLine(item_id=ITEM, quantity=1, unit_price=amount)
        command = PlaceOrder(order_id=order_id, user_id=user_id, lines=(line,), ordered_at=SINCE)
        await self.send_to_order(order_id, command)
        return order_id

    async def cancel(self, order_id: UUID) -> None:
        await self.send_to_order(order_id, CancelOrder(reason="changed-my-mind"))

    async def time_out(self, order_id: UUID) -> None:
        await self.send_to_order(order_id, RejectOrder(reason=TIMED_OUT))

    async def send_to_user(self, user_id: UUID, command: UserCommand) -> None:
        """Handle a command; a refusal is a valid outcome."""
        try:
            await handle(
                self.services.users.users, USER, user_id, command, metadata=create_metadata()
            )
        except (Refused, NotFound):
            pass

    async def send_to_order(self, order_id: UUID, command: OrderCommand) -> None:
        try:
            await handle(
                self.services.orders.orders, ORDER, order_id, command, metadata=create_metadata()
            )
        except (Refused, NotFound):
            pass

    async def publish(self) -> None:
        """Send what the relays would: everything committed since the last call."""
        services = self.services
        services.users_position = await self._publish(services.users.pool, services.users_position)
        services.orders_position = await self._publish(
            services.orders.pool, services.orders_position
        )

    async def _publish(self, pool: asyncpg.Pool, position: int) -> int:
        for row in await pool.fetch(NEWS, position):
            record = IncomingRecord(
                topic=row["topic"],
                partition=row["partition"],
                offset=row["position"],
                key=row["key"],
                value=row["value"],
                headers=wire.unpack(row["headers"]),
            )
            self.topics[row["topic"], UUID(row["key"].decode())].append(record)
            position = row["position"]
        return position

    def publish_again(self, topic: str, user_id: UUID, count: int) -> None:
        """Send the last messages again, like a relay that died before its checkpoint."""
        records = self.topics[topic, user_id]
        records += records[-count:]

    async def deliver(
        self, worker: DrivenWorker, user_id: UUID, count: int, dies_at: Failpoint | None = None
    ) -> None:
        """Deliver the next messages of a user; a worker that dies gets them again."""
        begin = worker.cursors[user_id]
        batch = self.topics[worker.topic, user_id][begin : begin + count]
        if not batch:
            return
        with kill_at(dies_at):
            await worker.consumer.take(batch)
            worker.cursors[user_id] = begin + len(batch)

    def deliver_again(self, worker: DrivenWorker, user_id: UUID, count: int) -> None:
        """Deliver the last messages again, as after a lost acknowledgement."""
        worker.cursors[user_id] = max(0, worker.cursors[user_id] - count)

    async def settle(self) -> None:
        """Deliver all messages, until no new one is published."""
        while True:
            await self.publish()
            if not any([await self._deliver_rest(each) for each in self._workers]):
                return

    @property
    def _workers(self) -> Sequence[DrivenWorker]:
        return (self.users_worker, self.orders_worker)

    async def _deliver_rest(self, worker: DrivenWorker) -> bool:
        moved = False
        for user_id in self.user_ids:
            rest = len(self.topics[worker.topic, user_id]) - worker.cursors[user_id]
            await self.deliver(worker, user_id, rest)
            moved |= rest > 0
        return moved

    async def findings(self) -> list[str]:
        """The findings of `make audit` for these users and orders."""
        async with (
            self.services.users.pool.acquire() as users,
            self.services.orders.pool.acquire() as orders,
        ):
            books = await read_books(
                users, orders, only_users=self.user_ids, only_orders=self.order_ids
            )
        # A consumed version stays consumed, even when the control test disables that bookkeeping.
        for order_id, version in books.taken.items():
            self.taken[order_id] = max(version, self.taken.get(order_id, 0))
        return list(findings(replace(books, taken=self.taken)))

    async def user(self, user_id: UUID) -> Registered | Deleted:
        user = (await load(self.services.users.users, USER, user_id)).state
        assert not isinstance(user, NotRegistered)
        return user

    async def order(self, order_id: UUID) -> PlacedOrder:
        return require_placed((await load(self.services.orders.orders, ORDER, order_id)).state)


def create_metadata() -> Metadata:
    return Metadata(correlation_id=new_id(), causation_id=new_id())
