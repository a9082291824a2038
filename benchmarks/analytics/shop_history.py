"""A shop's history as its services would publish it, generated fast; the same for the same seed."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.analytics import true_cells
from benchmarks.analytics.job_sizes import Size
from benchmarks.analytics.true_cells import (
    MILLISECONDS_OF_AN_HOUR,
    Cells,
    Integers,
    Places,
    Purchases,
)
from shared.eventsourcing.event_store import get_partition
from shared.messaging import kafka, messages, wire
from shared.messaging.wire import OutgoingRecord
from shared.runtime.brokers import Brokers

USERS_TOPIC, ITEMS_TOPIC, ORDERS_TOPIC = "users.v1", "items.v1", "orders.v1"

PLACES = 10
TYPES = 20
ITEM_SKEW = 1.3
"""The exponent of a Zipf distribution: most purchases are of few items."""
ORDERS_OF_A_MOVE = 50
"""One user moves per this number of orders."""
ORDERS_OF_A_CORRECTION = 500
LATE_SHARE = 0.2
LATE_MILLISECONDS_MAX = 600_000
"""The maximum difference between the time of a late order and of the records around it."""
QUANTITY_MAX = 4
CENTS_MIN, CENTS_MAX = 100, 10_000

BEGINNING = np.datetime64("2026-01-05T00:00:00.000")
LONG_AGO = int((np.datetime64("2025-01-01T00:00:00.000") - BEGINNING).astype(np.int64))
PAGE_ORDERS = 25_000
"""Orders generated at a time."""

ORDER = (
    b'{"order_id":"%b","user_id":"%b","lines":[{"item_id":"%b","quantity":%d,'
    b'"unit_price":"%d.%02d"}],"amount":"%d.%02d","ordered_at":"%b"}'
)
USER = b'{"user_id":"%b","address":"place %d","gender":"%b","effective_at":"%b"}'
ITEM = (
    b'{"item_id":"%b","name":"thing","type":"type %d","origin":"place %d",'
    b'"price":"9.99","effective_at":"%b"}'
)
GENDERS = (b"female", b"male")


@dataclass(slots=True)
class Totals:
    """The right sums of all cells."""

    orders: int = 0
    quantity: int = 0
    cents: int = 0


class ShopHistory:
    """All users and items, and then pages of orders with moves and corrections between them."""

    def __init__(self, seed: int, *, users: int, items: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._users = self._ids(users)
        self._items = self._ids(items)
        self._partition = {user: get_partition(ORDERS_TOPIC, user.decode()) for user in self._users}
        self._genders = self._numbers(len(GENDERS), users).tolist()
        self._types = self._numbers(TYPES, items).tolist()
        self._versions = dict.fromkeys([*self._users, *self._items], 0)
        self._order_headers = header_template("order-confirmed", "orders-svc")
        self._addresses, self._origins = Places(), Places()
        self._purchases: list[Purchases] = []
        self.totals = Totals()

    def cells(self) -> Cells:
        """The right answer for everything so far, whatever came late."""
        purchases = Purchases(*map(np.concatenate, zip(*self._purchases, strict=True)))
        since, types = int(BEGINNING.astype("datetime64[s]").astype(np.int64)), self._types
        return true_cells.count(purchases, self._addresses, self._origins, np.array(types), since)

    def opening(self) -> list[OutgoingRecord]:
        """Every user and item, valid long before the first order."""
        return [
            *(
                self._user(number, "user-registered", LONG_AGO)
                for number in range(len(self._users))
            ),
            *(self._item(number, "item-listed", LONG_AGO) for number in range(len(self._items))),
        ]

    def backlog(self, count: int, hours: int) -> Iterator[list[OutgoingRecord]]:
        """Pages of orders with times spread over the hours; late ones are at their arrival."""
        span = hours * MILLISECONDS_OF_AN_HOUR / count
        for first in range(0, count, PAGE_ORDERS):
            size = min(PAGE_ORDERS, count - first)
            arrived = np.sort(first + self._chance.random(size) * size) * span
            late = self._chance.random(size) * LATE_MILLISECONDS_MAX
            late *= self._chance.random(size) < LATE_SHARE
            yield list(self._page(first, np.maximum(arrived - late, 0).astype(np.int64)))

    def now(self, count: int) -> list[OutgoingRecord]:
        """Orders placed now."""
        since = np.datetime64(time.time_ns() // 1_000_000, "ms") - BEGINNING
        return list(self._orders(np.full(count, since.astype(np.int64))))

    def _page(self, first: int, times: Integers) -> Iterator[OutgoingRecord]:
        for number, order in enumerate(self._orders(times)):
            if (first + number) % ORDERS_OF_A_MOVE == 0:
                user = int(self._chance.integers(len(self._users)))
                yield self._user(user, "user-moved", int(times[number]))
            if (first + number) % ORDERS_OF_A_CORRECTION == 0:
                item = int(self._chance.integers(len(self._items)))
                yield self._item(item, "item-origin-corrected", int(times[number]))
            yield order

    def _orders(self, times: Integers) -> Iterator[OutgoingRecord]:
        count = len(times)
        users = self._numbers(len(self._users), count)
        items = self._chance.zipf(ITEM_SKEW, count) % len(self._items)
        quantities = self._chance.integers(1, QUANTITY_MAX + 1, count)
        prices = self._chance.integers(CENTS_MIN, CENTS_MAX, count)
        self._purchases.append(Purchases(users, items, times, quantities, prices))
        self.totals.orders += count
        self.totals.quantity += int(quantities.sum())
        self.totals.cents += int((quantities * prices).sum())
        now = time.time_ns() // 1_000_000
        columns = zip(
            *(self._ids(count), self._ids(count), users.tolist(), items.tolist()),
            *(quantities.tolist(), prices.tolist(), to_texts(times)),
            strict=True,
        )
        for order_id, event_id, user_number, item, quantity, cents, text in columns:
            user, amount = self._users[user_number], quantity * cents
            value = ORDER % (
                *(order_id, user, self._items[item], quantity),
                *(cents // 100, cents % 100, amount // 100, amount % 100, text),
            )
            headers = self._order_headers(event_id, order_id, user)
            yield OutgoingRecord(ORDERS_TOPIC, self._partition[user], user, value, headers, now)

    def _user(self, number: int, type_: str, since: int) -> OutgoingRecord:
        user, gender = self._users[number], GENDERS[self._genders[number]]
        place = int(self._chance.integers(PLACES))
        self._addresses.add(number, since, place)
        value = USER % (user, place, gender, to_text(since))
        return self._fact(USERS_TOPIC, "users-svc", type_, user, value)

    def _item(self, number: int, type_: str, since: int) -> OutgoingRecord:
        item, place = self._items[number], int(self._chance.integers(PLACES))
        self._origins.add(number, since, place)
        value = ITEM % (item, self._types[number], place, to_text(since))
        return self._fact(ITEMS_TOPIC, "orders-svc", type_, item, value)

    def _fact(
        self, topic: str, source: str, type_: str, key: bytes, value: bytes
    ) -> OutgoingRecord:
        self._versions[key] += 1
        headers = header_template(type_, source, version=self._versions[key])
        (event_id,) = self._ids(1)
        return OutgoingRecord(
            topic=topic,
            partition=get_partition(topic, key.decode()),
            key=key,
            value=value,
            headers=headers(event_id, key, key),
            milliseconds=time.time_ns() // 1_000_000,
        )

    def _numbers(self, below: int, count: int) -> Integers:
        return self._chance.integers(below, size=count)

    def _ids(self, count: int) -> list[bytes]:
        """Text of UUIDs of version 7, but of no time."""
        digits = self._chance.bytes(16 * count).hex()
        ids = (digits[begin : begin + 32] for begin in range(0, 32 * count, 32))
        return [
            f"{each[:8]}-{each[8:12]}-7{each[13:16]}-8{each[17:20]}-{each[20:]}".encode()
            for each in ids
        ]


def to_texts(times: Integers) -> list[bytes]:
    """Milliseconds since the BEGINNING in the time format of the services."""
    instants = BEGINNING + times.astype("timedelta64[ms]")
    return [text.encode() + b"Z" for text in np.datetime_as_string(instants, unit="us").tolist()]


def to_text(time: int) -> bytes:
    return to_texts(np.array([time]))[0]


def header_template(
    type_: str, source: str, *, version: int = 2
) -> Callable[[bytes, bytes, bytes], bytes]:
    """A function of the ids of event, stream and subject: packed headers with these in them.

    All ids are equally long, so that everything else is packed only once.
    """
    event, stream, subject = (str(digit) * 36 for digit in range(3))
    packed = wire.pack(
        wire.to_headers(
            {
                messages.ID: event,
                messages.TYPE: type_,
                messages.SOURCE: source,
                messages.TIME: "2026-01-05T00:00:00.000000Z",
                messages.SPEC: messages.SPEC_VERSION,
                messages.SUBJECT: subject,
                messages.SCHEMA_VERSION: "1",
                messages.STREAM_ID: stream,
                messages.STREAM_VERSION: str(version),
                messages.CORRELATION_ID: event,
                messages.CAUSATION_ID: event,
                messages.CONTENT: messages.CONTENT_TYPE,
                messages.PREVIOUS_VERSION: str(version - 1),
            }
        )
    ).replace(b"%", b"%%")
    for name, placeholder in (("event", event), ("stream", stream), ("subject", subject)):
        packed = packed.replace(placeholder.encode(), b"%%(%b)b" % name.encode())

    def filled(event_id: bytes, stream_id: bytes, subject_id: bytes) -> bytes:
        return packed % {b"event": event_id, b"stream": stream_id, b"subject": subject_id}

    return filled


async def fill(bootstrap_servers: str, size: Size) -> ShopHistory:
    """Publish a whole history, page by page."""
    history = ShopHistory(1, users=size.users, items=size.items)
    client = kafka.create_producer(Brokers(bootstrap_servers), "bench")
    await client.start()
    try:
        await kafka.publish(client, history.opening())
        for page in history.backlog(size.orders, size.hours):
            await kafka.publish(client, page)
    finally:
        await kafka.close(client)
    return history
