"""The program: three topics, two joins and a count, in three steps with a topic between them.

    users.v1 ──▶ users ─┐          items.v1 ──▶ items ─┐
    orders.v1 ──────────┴▶ lines-by-item ──────────────┴▶ purchases-by-hour ──▶ buyers

Tables are Faust's, on RocksDB with a changelog. Everything is done at least once, and done again
it changes nothing: see `buyers.with_purchase`.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TypeVar

import faust
from faust.types import TP, ChannelT, EventT, StreamT, TopicT
from pydantic import ValidationError

from analytics_faust.buyers import Bought, Hours, key_of, with_purchase
from analytics_faust.copartitions import LINES_BY_ITEM, PURCHASES_BY_HOUR
from analytics_faust.join_barrier import JoinBarrier, TableOffsets
from analytics_faust.joins import LINE, PURCHASE, lines_of, purchase_of
from analytics_faust.messages import (
    ITEM_FACTS,
    ITEMS,
    ORDER_FACTS,
    ORDERS,
    USER_FACTS,
    USERS,
    OrderConfirmed,
    UserDeleted,
)
from analytics_faust.settings import FaustSettings
from analytics_faust.tables import Table
from shared.eventsourcing.codec import Codec, UnknownSchemaVersion
from shared.eventsourcing.event_store import partition_of
from shared.inbox import dead_letters, worker
from shared.inbox.consumer import DeadLetterWriter, reason_of
from shared.messaging.messages import Message
from shared.messaging.records import Malformed, message_of
from shared.messaging.topics import INTERNAL_TOPICS, TOPICS

log = logging.getLogger(__name__)

NAME = "analytics-faust"

BATCH_RECORDS_MAX = 100
"""Records whose writes are waited for together."""

POLL_RECORDS_MAX = 100
"""Records of one look at the consumer. Orders that wait for their users must never fill Faust's
buffer of 4096 so far that no record of a user gets past them."""

HOURS_PLACE = TP(PURCHASES_BY_HOUR, 0)
"""Who has this partition has all hours: a buyer is counted once because they are counted there."""

E = TypeVar("E")

Step = Callable[[EventT[bytes]], Coroutine[None, None, Sequence[Awaitable[object]]]]
"""What a record leads to; the record is done when all that is done."""


class Program:
    """The Faust application and what it counts. Making one connects to nothing."""

    def __init__(self, settings: FaustSettings, write_dead_letter: DeadLetterWriter) -> None:
        self.hours = Hours()
        self.lost: Counter[str] = Counter()
        """What did not find its way since this process began, by what was missing."""
        self._set_aside = write_dead_letter
        self.app = app = faust.App(
            NAME,
            **worker.faust_options(settings.brokers),
            store="rocksdb://",
            datadir=str(settings.faust_dir),
            table_standby_replicas=settings.faust_standby_replicas,
            web_enabled=False,
            topic_disable_leader=True,
            topic_allow_declare=False,
            consumer_auto_offset_reset="earliest",
            broker_session_timeout=worker.SESSION_TIMEOUT_SECONDS,
            broker_rebalance_timeout=worker.REBALANCE_TIMEOUT_SECONDS,
            broker_heartbeat_interval=worker.HEARTBEAT_SECONDS,
            broker_commit_interval=worker.COMMIT_SECONDS,
            broker_max_poll_records=POLL_RECORDS_MAX,
            stream_wait_empty=False,
            autodiscover=False,
        )
        self._fed = TableOffsets(app)
        self.users: Table[str] = Table(app, "users", partitions=TOPICS[USERS].partitions)
        self.items: Table[str] = Table(app, "items", partitions=TOPICS[ITEMS].partitions)
        self.buyers: Table[Bought] = Table(
            app, "buyers", partitions=INTERNAL_TOPICS[PURCHASES_BY_HOUR].partitions
        )
        self.buyers.faust.on_recover(self._count_anew)
        self._lines = raw(app, LINES_BY_ITEM)
        self._purchases = raw(app, PURCHASES_BY_HOUR)
        app.on_partitions_revoked.connect(self._forget_progress)
        self._let(raw(app, USERS), self._take_user)
        self._let(raw(app, ITEMS), self._take_item)
        self._let(raw(app, ORDERS), self._take_order, after=USERS)
        self._let(self._lines, self._take_line, after=ITEMS)
        self._let(self._purchases, self._take_purchase)

    @property
    def has_hours(self) -> bool:
        """Whether the hours are counted here, and counted up to now."""
        app = self.app
        return app.started and not app.rebalancing and HOURS_PLACE in app.consumer.assignment()

    async def _take_user(self, event: EventT[bytes]) -> Sequence[Awaitable[object]]:
        found = await self._read(event, USER_FACTS)
        if found is None:
            return ()
        fact, _ = found
        key = str(fact.user_id)
        if isinstance(fact, UserDeleted):
            return [self.users.remove(key)]
        return [self.users.put(key, fact.address)]

    async def _take_item(self, event: EventT[bytes]) -> Sequence[Awaitable[object]]:
        found = await self._read(event, ITEM_FACTS)
        if found is None:
            return ()
        fact, _ = found
        return [self.items.put(str(fact.item_id), fact.origin)]

    async def _take_order(self, event: EventT[bytes]) -> Sequence[Awaitable[object]]:
        """Join with the user, and send each line to the partition of its item."""
        found = await self._read(event, ORDER_FACTS)
        if found is None:
            return ()
        order, message = found
        address = self.users.get(str(order.user_id))
        if address is None and isinstance(order, OrderConfirmed):
            self.lost["orders_without_user"] += 1
        return [
            await self._lines.send(
                key=str(line.item_id).encode(),
                value=LINE.dump_json(line),
                partition=partition_of(ITEMS, str(line.item_id)),
            )
            for line in lines_of(order, message.stream_version, address)
        ]

    async def _take_line(self, event: EventT[bytes]) -> Sequence[Awaitable[object]]:
        """Join with the item, and send what was bought from home to its hour."""
        line = LINE.validate_json(event.message.value or b"")
        origin = self.items.get(str(line.item_id))
        if origin is None:
            self.lost["lines_without_item"] += 1
        purchase = purchase_of(line, origin)
        if purchase is None:
            return ()
        key, value = purchase.hour.isoformat().encode(), PURCHASE.dump_json(purchase)
        return [await self._purchases.send(key=key, value=value, partition=HOURS_PLACE.partition)]

    async def _take_purchase(self, event: EventT[bytes]) -> Sequence[Awaitable[object]]:
        """Count. A repeat is written once more: its first change may not have been sent."""
        purchase = PURCHASE.validate_json(event.message.value or b"")
        key = key_of(purchase)
        before = self.buyers.get(key) or {}
        after = with_purchase(before, purchase)
        written = self.buyers.put(key, after)
        self.hours.change(purchase.hour, before, after)
        return [written]

    def _let(self, topic: TopicT, step: Step, after: str | None = None) -> None:
        """Let records of a topic go through a step; if said so, after those of another topic."""
        name = topic.get_topic_name()

        async def agent(stream: StreamT[bytes]) -> None:
            # Left to itself, Faust acknowledges the record in hand of an agent that is stopped.
            assert isinstance(stream, faust.Stream)
            records = stream.noack()
            assert isinstance(records.channel, ChannelT)
            # Faust empties its queues when streams go on after a recovery. What was fetched since
            # it looked up where to go on would be lost until the next start; what is older is
            # known by its generation, and left out.
            self.app.flow_control._queues.discard(records.channel.queue)
            batch: list[EventT[bytes]] = []
            pending: list[Awaitable[object]] = []
            join_barrier = None if after is None else JoinBarrier(self.app, self._fed, after)
            async for event in records.events():
                if join_barrier and not await join_barrier.wait(
                    event, records.channel.queue.qsize()
                ):
                    continue  # its next owner reads it again
                pending += await step(event)
                batch.append(event)
                if len(batch) < BATCH_RECORDS_MAX and not records.channel.empty():
                    continue
                await asyncio.gather(*pending)
                for each in batch:
                    each.ack()
                    self._fed.note(each)
                batch.clear()
                pending.clear()

        async def agent_or_end(stream: StreamT[bytes]) -> None:
            try:
                await agent(stream)
            except Exception as error:
                # Faust would start the agent again behind the record in hand, and commit past it.
                log.exception("%s met a bug in itself", name)
                await self.app.crash(error)
                await asyncio.Event().wait()

        # concurrency 1: with more, Faust may commit past a record that is still in work.
        self.app.agent(topic, name=f"{NAME}.{name}", concurrency=1)(agent_or_end)

    async def _read(self, event: EventT[bytes], codec: Codec[E]) -> tuple[E, Message] | None:
        """The fact in a record, None for one that nobody cares about; a bad one is set aside."""
        record = worker.record_of(event)
        try:
            message = message_of(record)
            return (codec.read(message), message) if message.type in codec.names else None
        except (Malformed, UnknownSchemaVersion, ValidationError) as error:
            reason = reason_of(error)
            log.error("%s/%d/%d set aside: %s", *event.message.tp, event.message.offset, reason)
            self.lost["bad_records"] += 1
            await self._set_aside(dead_letters.letter(record, NAME, reason))
            return None

    async def _forget_progress(self, *_: object, **__: object) -> None:
        self._fed.forget()

    async def _count_anew(self) -> None:
        """After each recovery: the table may have come from elsewhere."""
        self.hours.make_from(self.buyers.items())


def raw(app: faust.App, topic: str) -> TopicT:
    return app.topic(topic, key_serializer="raw", value_serializer="raw")
