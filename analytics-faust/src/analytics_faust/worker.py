"""The program: three topics, two joins and a count, in three steps with a topic between them.

    users.v1 ──▶ users ─┐          items.v1 ──▶ items ─┐
    orders.v1 ──────────┴▶ lines-by-item ──────────────┴▶ purchases-by-hour ──▶ buyers

Tables are Faust's, on RocksDB with a changelog. Every record is processed at least once, and a
repeat changes nothing: see `buyers.add_purchase`.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TypeVar

import faust
from faust.types import TP, ChannelT, EventT, StreamT, TopicT
from pydantic import ValidationError

from analytics_faust.buyers import BuyerLines, Hours, add_purchase, to_key
from analytics_faust.copartitions import LINES_BY_ITEM, PURCHASES_BY_HOUR
from analytics_faust.join_barrier import JoinBarrier, TableOffsets
from analytics_faust.joins import LINE, PURCHASE, to_lines, to_purchase
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
from analytics_faust.transport import create_app, to_record
from shared.eventsourcing.codec import Codec, UnknownSchemaVersion
from shared.eventsourcing.event_store import get_partition
from shared.inbox import dead_letters
from shared.inbox.consumer import DeadLetterWriter, to_class, to_reason
from shared.messaging.messages import Message
from shared.messaging.records import Malformed, parse_message
from shared.messaging.topics import INTERNAL_TOPICS, TOPICS

log = logging.getLogger(__name__)

NAME = "analytics-faust"

BATCH_RECORDS_MAX = 100
"""Records whose writes are awaited together."""

POLL_RECORDS_MAX = 100
"""Records of one poll of the consumer. Orders that wait for their users must never fill Faust's
buffer of 4096 so far that no record of a user can pass them."""

HOURS_PARTITION = TP(PURCHASES_BY_HOUR, 0)
"""The worker with this partition has all hours: each buyer is counted in one place."""

E = TypeVar("E")

Step = Callable[[EventT[bytes]], Coroutine[None, None, Sequence[Awaitable[object]]]]
"""Processes a record and returns its pending writes; the record is done when they are."""


class Program:
    """The Faust application and its counts. The constructor opens no connection."""

    def __init__(self, settings: FaustSettings, write_dead_letters: DeadLetterWriter) -> None:
        self.hours = Hours()
        self.lost: Counter[str] = Counter()
        """Records lost since this process started, by what was missing."""
        self._write_dead_letters = write_dead_letters
        self.app = app = create_app(
            NAME,
            settings.brokers,
            store="rocksdb://",
            datadir=str(settings.faust_dir),
            table_standby_replicas=settings.faust_standby_replicas,
            web_enabled=False,
            topic_disable_leader=True,
            topic_allow_declare=False,
            consumer_auto_offset_reset="earliest",
            broker_max_poll_records=POLL_RECORDS_MAX,
            stream_wait_empty=False,
            autodiscover=False,
        )
        self._offsets = TableOffsets(app)
        self.users: Table[str] = Table(app, "users", partitions=TOPICS[USERS].partitions)
        self.items: Table[str] = Table(app, "items", partitions=TOPICS[ITEMS].partitions)
        self.buyers: Table[BuyerLines] = Table(
            app, "buyers", partitions=INTERNAL_TOPICS[PURCHASES_BY_HOUR].partitions
        )
        self.buyers.faust.on_recover(self._recount)
        self._lines = make_raw_topic(app, LINES_BY_ITEM)
        self._purchases = make_raw_topic(app, PURCHASES_BY_HOUR)
        app.on_partitions_revoked.connect(self._forget_offsets)
        self._add_agent(make_raw_topic(app, USERS), self._handle_user)
        self._add_agent(make_raw_topic(app, ITEMS), self._handle_item)
        self._add_agent(make_raw_topic(app, ORDERS), self._handle_order, after=USERS)
        self._add_agent(self._lines, self._handle_line, after=ITEMS)
        self._add_agent(self._purchases, self._handle_purchase)

    @property
    def has_hours(self) -> bool:
        """Whether this worker counts the hours, and has recovered its tables."""
        app = self.app
        return app.started and not app.rebalancing and HOURS_PARTITION in app.consumer.assignment()

    async def _handle_user(self, event: EventT[bytes]) -> Sequence[Awaitable[object]]:
        found = await self._read(event, USER_FACTS)
        if found is None:
            return ()
        fact, _ = found
        key = str(fact.user_id)
        if isinstance(fact, UserDeleted):
            return [self.users.remove(key)]
        return [self.users.put(key, fact.address)]

    async def _handle_item(self, event: EventT[bytes]) -> Sequence[Awaitable[object]]:
        found = await self._read(event, ITEM_FACTS)
        if found is None:
            return ()
        fact, _ = found
        return [self.items.put(str(fact.item_id), fact.origin)]

    async def _handle_order(self, event: EventT[bytes]) -> Sequence[Awaitable[object]]:
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
                partition=get_partition(ITEMS, str(line.item_id)),
            )
            for line in to_lines(order, message.stream_version, address)
        ]

    async def _handle_line(self, event: EventT[bytes]) -> Sequence[Awaitable[object]]:
        """Join with the item, and send a local purchase to its hour."""
        line = LINE.validate_json(event.message.value or b"")
        origin = self.items.get(str(line.item_id))
        if origin is None:
            self.lost["lines_without_item"] += 1
        purchase = to_purchase(line, origin)
        if purchase is None:
            return ()
        key, value = purchase.hour.isoformat().encode(), PURCHASE.dump_json(purchase)
        return [
            await self._purchases.send(key=key, value=value, partition=HOURS_PARTITION.partition)
        ]

    async def _handle_purchase(self, event: EventT[bytes]) -> Sequence[Awaitable[object]]:
        """Count a purchase. A repeat is written again: its first change may not have been sent."""
        purchase = PURCHASE.validate_json(event.message.value or b"")
        key = to_key(purchase)
        before = self.buyers.get(key) or {}
        after = add_purchase(before, purchase)
        written = self.buyers.put(key, after)
        self.hours.change(purchase.hour, before, after)
        return [written]

    def _add_agent(self, topic: TopicT, step: Step, after: str | None = None) -> None:
        """Process the records of a topic with a step; behind a JoinBarrier on topic `after`."""
        name = topic.get_topic_name()

        async def agent(stream: StreamT[bytes]) -> None:
            # By default Faust acknowledges the current record of an agent that is stopped.
            assert isinstance(stream, faust.Stream)
            records = stream.noack()
            assert isinstance(records.channel, ChannelT)
            # Faust clears its queues when streams resume after a recovery. Records fetched since it
            # read the committed offsets would be lost until the next start; older ones are
            # recognized by their generation, and skipped.
            self.app.flow_control._queues.discard(records.channel.queue)
            batch: list[EventT[bytes]] = []
            pending: list[Awaitable[object]] = []
            join_barrier = None if after is None else JoinBarrier(self.app, self._offsets, after)
            async for event in records.events():
                if join_barrier and not await join_barrier.wait(
                    event, records.channel.queue.qsize()
                ):
                    continue  # the next owner of the partition reads it again
                pending += await step(event)
                batch.append(event)
                if len(batch) < BATCH_RECORDS_MAX and not records.channel.empty():
                    continue
                await asyncio.gather(*pending)
                for each in batch:
                    each.ack()
                    self._offsets.mark_done(each)
                batch.clear()
                pending.clear()

        async def agent_or_end(stream: StreamT[bytes]) -> None:
            try:
                await agent(stream)
            except Exception as error:
                # Faust would restart the agent after the current record, and commit past it.
                log.exception("the agent of %s failed", name)
                await self.app.crash(error)
                await asyncio.Event().wait()

        # concurrency 1: with more, Faust can commit past a record that is still being processed.
        self.app.agent(topic, name=f"{NAME}.{name}", concurrency=1)(agent_or_end)

    async def _read(self, event: EventT[bytes], codec: Codec[E]) -> tuple[E, Message] | None:
        """The event in a record, None for a type that is not used; dead-letters a bad record."""
        record = to_record(event)
        try:
            message = parse_message(record)
            return (codec.read(message), message) if message.type in codec.names else None
        except (Malformed, UnknownSchemaVersion, ValidationError) as error:
            reason = to_reason(error)
            topic, partition = event.message.tp
            place = {"topic": topic, "partition": partition, "offset": event.message.offset}
            log.error("a record is a dead letter: %s", to_class(reason), extra=place)
            self.lost["bad_records"] += 1
            await self._write_dead_letters([dead_letters.to_dead_letter(record, NAME, reason)])
            return None

    async def _forget_offsets(self, *_: object, **__: object) -> None:
        self._offsets.forget()

    async def _recount(self) -> None:
        """Rebuild the totals after each recovery: the table can come from another worker."""
        self.hours.rebuild(self.buyers.items())


def make_raw_topic(app: faust.App, topic: str) -> TopicT:
    return app.topic(topic, key_serializer="raw", value_serializer="raw")
