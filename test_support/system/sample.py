"""The sample: four users, four items and sixteen orders within twenty seconds of one hour."""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from test_support.system.clients import Hometown, Json, rfc3339

FOLDER = Path(__file__).with_name("sample")
HOUR = datetime(2016, 11, 11, tzinfo=UTC)
SINCE = datetime(2015, 12, 11, tzinfo=UTC)
CREDIT_LIMIT = "100000.00"


@dataclass(frozen=True, slots=True)
class Sample:
    """What was loaded: ids by name, orders as they were answered; (user, item) names an order."""

    hour: datetime
    users: dict[str, str]
    items: dict[str, str]
    orders: dict[tuple[str, str], Json]

    def at(self, minute: int, second: int = 0, millisecond: int = 0) -> datetime:
        """An instant of the sample's hour, or of a later one."""
        return self.hour + timedelta(minutes=minute, seconds=second, milliseconds=millisecond)


def rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def load(
    hometown: Hometown, hour: datetime = HOUR, report: Callable[[str], None] = lambda text: None
) -> Sample:
    """Load the sample through the APIs, its orders moved into `hour`; wait until all are decided.

    The idempotency keys follow from the hour, so loading an hour again changes nothing.
    """

    def key(*parts: str) -> str:
        return "/".join(["sample", rfc3339(hour), *parts])

    since = rfc3339(SINCE)
    users = {
        row["name"]: hometown.register_user(
            key=key("user", row["name"]),
            name=row["name"],
            address=row["address"],
            gender=row["gender"],
            birth_year=HOUR.year - int(row["age"]),
            credit_limit=CREDIT_LIMIT,
            effective_at=since,
        )["user_id"]
        for row in rows("users")
    }
    report(f"registered {len(users)} users")
    items = {
        row["name"]: hometown.list_item(
            key=key("item", row["name"]),
            name=row["name"],
            type=row["type"],
            origin=row["origin"],
            price=row["price"],
            effective_at=since,
        )["item_id"]
        for row in rows("items")
    }
    report(f"listed {len(items)} items")
    placed = {
        (row["user"], row["item"]): hometown.place_order(
            users[row["user"]],
            [(items[row["item"]], int(row["quantity"]))],
            hour + (datetime.fromisoformat(row["ordered_at"]) - HOUR),
            key=key("order", row["user"], row["item"]),
        )
        for row in rows("orders")
    }
    report(f"placed {len(placed)} orders")
    orders = {name: hometown.wait_for_decision(order["order_id"]) for name, order in placed.items()}
    statuses = sorted({order["status"] for order in orders.values()})
    report(f"all of them are {' or '.join(statuses)}")
    return Sample(hour, users, items, orders)
