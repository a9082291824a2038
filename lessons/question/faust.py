"""The question in plain Faust: two tables of versions, a topic by item, a topic by hour.

Each order is answered at once, with what is known then: a fact that comes later changes nothing.
"""

import json
from bisect import bisect_right
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import faust

from lessons.faust_engine import make_topic
from lessons.lesson import Topic, Topics

HOUR_CHARACTERS = len("2016-11-11T00")

Versions = list[tuple[float, str]]
"""Since when (seconds since 1970), and the value, sorted."""
Choice = Callable[[Versions, float], str | None]


def count_local_buyers(app: faust.App, records: Topics, out: Topic) -> None:
    """For every hour, the users that bought an item from where they lived when they ordered it."""
    count(app, records, out, last_known)


def count_by_first_address(app: faust.App, records: Topics, out: Topic) -> None:
    """Wrong: a user lives where they lived first, whatever became of them."""
    count(app, records, out, first_known)


def count(app: faust.App, records: Topics, out: Topic, choose: Choice) -> None:
    users = keep_versions(app, "users", records["users"], "address")
    items = keep_versions(app, "items", records["items"], "origin")
    by_item, by_hour = make_topic(app, "lines-by-item"), make_topic(app, "purchases-by-hour")
    purchases, buyers = app.Table("purchases"), app.Table("buyers")
    hours = app.Table("hours", default=lambda: [0, 0, 0, 0])

    @app.agent(records["orders"])
    async def join_users(stream: Any) -> None:
        async for event in stream.events():
            order = json.loads(event.value)
            address = choose(users[order["user_id"]], to_seconds(order["ordered_at"]))
            for number, line in enumerate(order["lines"]):
                joined = {**order, **line, "line": number, "address": address, "lines": None}
                await by_item.send(key=line["item_id"].encode(), value=json.dumps(joined).encode())

    @app.agent(by_item)
    async def join_items(stream: Any) -> None:
        async for event in stream.events():
            line = json.loads(event.value)
            origin = choose(items[line["item_id"]], to_seconds(line["ordered_at"]))
            if origin is not None and origin == line["address"]:
                hour = line["ordered_at"][:HOUR_CHARACTERS]
                await by_hour.send(key=hour.encode(), value=event.value)

    @app.agent(by_hour)
    async def count_purchases(stream: Any) -> None:
        """A table has one entry for each line of an order: the same order twice counts once."""
        async for event in stream.events():
            line, hour = json.loads(event.value), event.key.decode()
            purchase = f"{hour} {line['order_id']} {line['line']}"
            if purchase in purchases:
                continue
            buyer = f"{hour} {line['user_id']}"
            cents = int(line["quantity"] * Decimal(line["unit_price"]) * 100)
            added = [int(buyer not in buyers), 1, line["quantity"], cents]
            purchases[purchase] = buyers[buyer] = True
            hours[hour] = [sum(pair) for pair in zip(hours[hour], added, strict=True)]
            await out.send(value=to_row(hour, hours[hour]))


def keep_versions(app: faust.App, name: str, topic: Topic, field: str) -> Any:
    """All values of each key, with the time since when they are valid."""
    versions = app.Table(name, default=list)

    @app.agent(topic, name=f"keep-{name}")
    async def keep(stream: Any) -> None:
        async for event in stream.events():
            fact = json.loads(event.value)
            key = event.key.decode()
            version = (to_seconds(fact["effective_at"]), fact[field])
            versions[key] = sorted({*map(tuple, versions[key]), version})

    return versions


def to_seconds(time: str) -> float:
    """Texts do not compare as times: some have fractions of a second."""
    return datetime.fromisoformat(time).timestamp()


def last_known(versions: Versions, time: float) -> str | None:
    found = bisect_right(versions, time, key=lambda version: version[0])
    return versions[found - 1][1] if found else None


def first_known(versions: Versions, time: float) -> str | None:
    return versions[0][1] if versions else None


def to_row(hour: str, totals: list[int]) -> dict[str, object]:
    columns = ("local_buyers", "purchases", "quantity", "cents")
    return {"hour": f"{hour}:00:00", **dict(zip(columns, totals, strict=True))}
