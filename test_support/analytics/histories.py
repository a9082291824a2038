"""Events as the services publish them, to be fed to the job or to a part of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import NAMESPACE_OID, uuid5

START = datetime(2015, 12, 11, tzinfo=UTC)
HOUR = datetime(2016, 11, 11, tzinfo=UTC)

PRICES = {"iphone": "5388.88", "ipad": "4888.88", "iwatch": "2668.88", "ipod": "1888.88"}
ORIGINS = {"iphone": "BJ", "ipad": "SH", "iwatch": "SZ", "ipod": "GZ"}
TYPES = {"iphone": "phone", "ipad": "pad", "iwatch": "watch", "ipod": "pod"}
USERS = {
    "Jack": ("BJ", "male"),
    "Lily": ("SH", "female"),
    "Mike": ("SZ", "male"),
    "Lucy": ("GZ", "female"),
}

event_numbers = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One record: its topic, key, type ("" for none), version of its stream, and JSON."""

    topic: str
    key: str
    type: str
    version: int = 1
    schema_version: int = 1
    data: Mapping[str, object] | bytes
    traceparent: str | None = None
    number: int = field(default_factory=lambda: next(event_numbers))

    @property
    def value(self) -> bytes:
        return self.data if isinstance(self.data, bytes) else json.dumps(self.data).encode()

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        headers = {
            "ce_id": str(uuid5(NAMESPACE_OID, str(self.number))),
            "ce_type": self.type,
            "ce_schemaversion": str(self.schema_version),
            "ce_streamversion": str(self.version),
        }
        if self.traceparent is not None:
            headers["traceparent"] = self.traceparent
        return [(name, value.encode()) for name, value in headers.items() if value]


def id_of(name: str) -> str:
    """The id of the user, item or order that tests call by this name."""
    return str(uuid5(NAMESPACE_OID, name))


def text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def at(minute: float = 0, *, hour: int = 0) -> datetime:
    return HOUR + timedelta(hours=hour, minutes=minute)


def registered(user: str, address: str, gender: str = "male", *, since: datetime = START) -> Event:
    data = {
        "user_id": id_of(user),
        "address": address,
        "gender": gender,
        "effective_at": text(since),
    }
    return Event(topic="users.v1", key=id_of(user), type="user-registered", data=data)


def moved(
    user: str, address: str, gender: str = "male", *, since: datetime, version: int = 2
) -> Event:
    return replace(
        registered(user, address, gender, since=since), type="user-moved", version=version
    )


def deleted(user: str, *, since: datetime, version: int = 2) -> Event:
    data = {"user_id": id_of(user), "effective_at": text(since)}
    return Event(topic="users.v1", key=id_of(user), type="user-deleted", version=version, data=data)


def listed(item: str, *, origin: str | None = None, since: datetime = START) -> Event:
    data = {
        "item_id": id_of(item),
        "name": item,
        "type": TYPES[item],
        "origin": origin or ORIGINS[item],
        "price": PRICES[item],
        "effective_at": text(since),
    }
    return Event(topic="items.v1", key=id_of(item), type="item-listed", data=data)


def origin_corrected(item: str, origin: str, *, since: datetime = START, version: int = 2) -> Event:
    data = {
        "item_id": id_of(item),
        "type": TYPES[item],
        "origin": origin,
        "effective_at": text(since),
    }
    return Event(
        topic="items.v1", key=id_of(item), type="item-origin-corrected", version=version, data=data
    )


def confirmed(
    order: str,
    user: str,
    *lines: tuple[str, int],
    ordered_at: datetime,
    traceparent: str | None = None,
) -> Event:
    return Event(
        topic="orders.v1",
        key=id_of(user),
        type="order-confirmed",
        version=2,
        data=order_data(order, user, lines, ordered_at),
        traceparent=traceparent,
    )


def cancelled(
    order: str,
    user: str,
    *lines: tuple[str, int],
    ordered_at: datetime,
    was_confirmed: bool = True,
) -> Event:
    data = order_data(order, user, lines, ordered_at)
    return Event(
        topic="orders.v1",
        key=id_of(user),
        type="order-cancelled",
        version=3,
        data=data | {"was_confirmed": was_confirmed, "reason": "changed-my-mind"},
    )


def order_data(
    order: str, user: str, lines: tuple[tuple[str, int], ...], ordered_at: datetime
) -> dict[str, object]:
    return {
        "order_id": id_of(order),
        "user_id": id_of(user),
        "lines": [
            {"item_id": id_of(item), "quantity": quantity, "unit_price": PRICES[item]}
            for item, quantity in lines
        ],
        "amount": "0.00",
        "ordered_at": text(ordered_at),
    }


def sample() -> list[Event]:
    """The four users, the four items, and the sixteen orders of the data sample."""
    ordered = {
        "Jack": {"iphone": 3, "ipad": 4, "iwatch": 5, "ipod": 4},
        "Lily": {"ipad": 3, "iwatch": 4, "iphone": 2, "ipod": 3},
        "Mike": {"ipad": 2, "iwatch": 3, "iphone": 4, "ipod": 3},
        "Lucy": {"ipod": 3, "ipad": 4, "iwatch": 3, "iphone": 5},
    }
    users = [registered(user, *profile) for user, profile in USERS.items()]
    items = [listed(item) for item in PRICES]
    orders = [
        confirmed(f"{user} {item}", user, (item, quantity), ordered_at=at(second / 60))
        for number, (user, lines) in enumerate(ordered.items())
        for second, (item, quantity) in enumerate(lines.items(), start=5 * number + 1)
    ]
    return users + items + orders
