"""Random histories as records: everything that can happen to users, items and orders, shuffled."""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

BEGINNING = datetime(2016, 11, 11, tzinfo=UTC)
LONG_AGO = BEGINNING - timedelta(days=365)
HOURS = 8
"""Four times the lateness of the job: orders come too late, and hours become final."""

PLACES = [f"place {number}" for number in range(12)]
TYPES = ["phone", "pad", "watch", "pod"]
ITEMS = 200
ORDERS_OF_A_USER = 25
LINES_MAX = 3
MOVES_MAX = 4
CORRECTIONS_MAX = 2

LATER_MINUTES = 40
"""The maximum delay between an order and its record, in the ordinary case."""
MUCH_LATER_MINUTES = 300
MUCH_LATER = 0.03
CANCELLED = 0.15
REPEATED = 0.08
DELETED = 0.05
UNKNOWN_BEFORE = 0.2
"""The share of users whose registration is read after some of their orders."""
MALFORMED = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a service publishes; `seq` is the version of its stream."""

    topic: str
    key: str
    type: str
    seq: int
    value: bytes


Scheduled = tuple[float, int, Record]
"""When it is published, in minutes; then the order of creation, then the record."""


class RandomHistory:
    """The records of a seed, in the order in which they are published."""

    def __init__(self, seed: int, orders: int) -> None:
        self._random = random.Random(seed)
        self._scheduled: list[Scheduled] = []
        self._users = [self._id() for _ in range(max(orders // ORDERS_OF_A_USER, 2))]
        self._items = [self._id() for _ in range(min(ITEMS, orders))]
        for user in self._users:
            self._live(user)
        for item in self._items:
            self._list(item)
        for _ in range(orders):
            self._order()

    def __iter__(self) -> Iterator[Record]:
        for _, _, record in sorted(self._scheduled, key=lambda each: each[:2]):
            yield record

    def _live(self, user: str) -> None:
        """Register, move, be deleted; published before or some time after the first orders."""
        unknown = self._random.random() < UNKNOWN_BEFORE
        known_at = self._random.uniform(0, HOURS * 60) if unknown else -1.0
        gender = self._random.choice(["male", "female"])
        person = {"user_id": user, "gender": gender}
        first = person | {"address": self._place(), "effective_at": text(LONG_AGO)}
        self._publish(known_at, "users.v1", user, "user-registered", 1, first)
        for seq in range(2, 2 + self._random.randrange(MOVES_MAX)):
            minute = self._random.uniform(-30, HOURS * 60)
            known_at = max(known_at, minute) + self._delay()
            fact = {"effective_at": text(at(minute))}
            if self._random.random() < DELETED:
                gone = {"user_id": user} | fact
                self._publish(known_at, "users.v1", user, "user-deleted", seq, gone)
            else:
                moved = person | {"address": self._place()} | fact
                self._publish(known_at, "users.v1", user, "user-moved", seq, moved)

    def _list(self, item: str) -> None:
        thing = {"item_id": item, "type": self._random.choice(TYPES)}
        since = {"origin": self._place(), "effective_at": text(LONG_AGO)}
        self._publish(-1.0, "items.v1", item, "item-listed", 1, thing | since)
        known_at = 0.0
        for seq in range(2, 2 + self._random.randrange(CORRECTIONS_MAX + 1)):
            known_at += self._random.uniform(0, HOURS * 60 / CORRECTIONS_MAX)
            back = self._random.choice([LONG_AGO, at(known_at - self._random.uniform(0, 120))])
            corrected = thing | {"origin": self._place(), "effective_at": text(back)}
            self._publish(known_at, "items.v1", item, "item-origin-corrected", seq, corrected)

    def _order(self) -> None:
        user, minute = self._random.choice(self._users), self._random.uniform(0, HOURS * 60)
        order = {
            "order_id": self._id(),
            "user_id": user,
            "ordered_at": text(at(minute)),
            "lines": [self._line() for _ in range(self._random.randint(1, LINES_MAX))],
        }
        known_at = minute + self._delay()
        self._publish(known_at, "orders.v1", user, "order-confirmed", 2, order)
        if self._random.random() < CANCELLED:
            known_at += self._delay()
            cancelled = order | {"was_confirmed": True}
            self._publish(known_at, "orders.v1", user, "order-cancelled", 3, cancelled)
        if self._random.random() < REPEATED:
            again = known_at + self._delay()
            self._publish(again, "orders.v1", user, "order-confirmed", 2, order)
        if self._random.random() < MALFORMED:
            broken = order | {"lines": []}
            self._publish(known_at, "orders.v1", user, "order-confirmed", 2, broken)

    def _line(self) -> dict[str, object]:
        return {
            "item_id": self._random.choice(self._items),
            "quantity": self._random.randint(1, 9),
            "unit_price": f"{self._random.randrange(1, 1_000_000) / 100:.2f}",
        }

    def _publish(
        self,
        minute: float,
        topic: str,
        key: str,
        type_: str,
        seq: int,
        fields: Mapping[str, object],
    ) -> None:
        value = json.dumps(dict(fields)).encode()
        record = Record(topic=topic, key=key, type=type_, seq=seq, value=value)
        self._scheduled.append((minute, len(self._scheduled), record))

    def _delay(self) -> float:
        """Minutes from an event to its publication."""
        much = self._random.random() < MUCH_LATER
        return self._random.uniform(0, MUCH_LATER_MINUTES if much else LATER_MINUTES)

    def _place(self) -> str:
        return self._random.choice(PLACES)

    def _id(self) -> str:
        return str(UUID(int=self._random.getrandbits(128)))


def at(minute: float) -> datetime:
    return BEGINNING + timedelta(minutes=minute)


def text(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")
