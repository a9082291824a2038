"""Joins in Faust: its own are not implemented, so tables hold what a later record may need."""

import json
from typing import Any

import faust

from lessons.faust_engine import make_topic
from lessons.lesson import Topic, Topics

GRACE_SECONDS = 1
DAY_SECONDS = 24 * 3600


def enrich_clicks(app: faust.App, records: Topics, out: Topic) -> None:
    """Each view with the search within a second of it, and with the profile of its user.

    A view without a search comes when no search can match it any more: when the slower of the two
    streams has passed.
    """
    enrich_within(1, app, records, out)


def enrich_at_any_time(app: faust.App, records: Topics, out: Topic) -> None:
    """Wrong: every search of the user matches, and the tables hold a day."""
    enrich_within(DAY_SECONDS, app, records, out)


def enrich_within(seconds: int, app: faust.App, records: Topics, out: Topic) -> None:
    profiles = keep_profiles(app, records["profiles"])
    searches = app.Table("searches", default=list)
    views = app.Table("views", default=list)
    newest = {"views": 0.0, "searches": 0.0}

    async def send(user: str, page: str, search: str | None) -> None:
        row = {"user": user, "name": None, "zip": None, "search": search, "page": page}
        await out.send(value=row | profiles.get(user, {}))

    async def advance(stream: str, time: float) -> None:
        """Send the views that no search can match any more, and forget what is too old."""
        newest[stream] = max(newest[stream], time)
        closed = min(newest.values()) - GRACE_SECONDS - seconds
        for user in list(views):
            for at, page, is_matched in views[user]:
                if at < closed and not is_matched:
                    await send(user, page, None)
            views[user] = [each for each in views[user] if each[0] >= closed]
        for user in list(searches):
            searches[user] = [each for each in searches[user] if each[0] >= closed]

    @app.agent(records["views"])
    async def take_views(stream: Any) -> None:
        async for event in stream.events():
            user, page, time = event.key.decode(), event.value.decode(), event.message.timestamp
            found = [text for at, text in searches[user] if abs(at - time) <= seconds]
            for search in found:
                await send(user, page, search)
            views[user] = [*views[user], (time, page, bool(found))]
            await advance("views", time)

    @app.agent(records["searches"])
    async def take_searches(stream: Any) -> None:
        async for event in stream.events():
            user, search, time = event.key.decode(), event.value.decode(), event.message.timestamp
            searches[user] = [*searches[user], (time, search)]
            kept = []
            for at, page, is_matched in views[user]:
                matches = abs(at - time) <= seconds
                if matches:
                    await send(user, page, search)
                kept.append((at, page, is_matched or matches))
            views[user] = kept
            await advance("searches", time)


def count_by_zip(app: faust.App, records: Topics, out: Topic) -> None:
    """Views by the zip code of their user: the key changes, so that they go through a topic."""
    profiles = keep_profiles(app, records["profiles"])
    by_zip = make_topic(app, "views-by-zip")
    counts = app.Table("views-by-zip", default=int)

    @app.agent(records["views"])
    async def send_by_zip(stream: Any) -> None:
        async for event in stream.events():
            zip_code = profiles.get(event.key.decode(), {}).get("zip")
            await by_zip.send(key=json.dumps(zip_code).encode(), value=event.value)

    @app.agent(by_zip)
    async def count(stream: Any) -> None:
        async for event in stream.events():
            counts[event.key] += 1
            await out.send(value={"zip": json.loads(event.key), "count": counts[event.key]})


def keep_profiles(app: faust.App, topic: Topic) -> Any:
    """The last profile of each user."""
    profiles = app.Table("profiles")

    @app.agent(topic)
    async def keep(stream: Any) -> None:
        async for event in stream.events():
            profile = json.loads(event.value)
            profiles[event.key.decode()] = {"name": profile["name"], "zip": profile["zip"]}

    return profiles


def join_table(app: faust.App, records: Topics, out: Topic) -> None:
    """Orders with the address of their user. A user who moves leads to no row."""
    addresses = keep_last(app, records["users"])

    @app.agent(records["orders"])
    async def join(stream: Any) -> None:
        async for event in stream.events():
            user, order = event.key.decode(), event.value.decode()
            await out.send(value={"user": user, "order": order, "address": addresses.get(user)})


def join_tables(app: faust.App, records: Topics, out: Topic) -> None:
    """Price and stock of each item: a change of either leads to a row, once both are known."""
    prices, stocks = app.Table("prices"), app.Table("stocks")

    async def send(item: str) -> None:
        if item in prices and item in stocks:
            await out.send(value={"item": item, "price": prices[item], "stock": stocks[item]})

    @app.agent(records["prices"])
    async def take_prices(stream: Any) -> None:
        async for event in stream.events():
            prices[event.key.decode()] = event.value.decode()
            await send(event.key.decode())

    @app.agent(records["stocks"])
    async def take_stocks(stream: Any) -> None:
        async for event in stream.events():
            stocks[event.key.decode()] = event.value.decode()
            await send(event.key.decode())


def join_foreign_key(app: faust.App, records: Topics, out: Topic) -> None:
    """Orders, each with the address of its user, as a table: a user who moves changes all of them.

    An order goes to the partition of its user first, whose table has all of their orders.
    """
    addresses = app.Table("addresses")
    orders = app.Table("orders-of-users", default=list)
    by_user = make_topic(app, "orders-by-user")

    async def send(user: str, numbers: list[str]) -> None:
        for number in numbers if user in addresses else ():
            await out.send(value={"user": user, "address": addresses[user], "order": number})

    @app.agent(records["orders"])
    async def send_by_user(stream: Any) -> None:
        async for event in stream.events():
            order = json.loads(event.value)
            await by_user.send(key=order["user"].encode(), value=order["order"].encode())

    @app.agent(by_user)
    async def take_orders(stream: Any) -> None:
        async for event in stream.events():
            user, number = event.key.decode(), event.value.decode()
            orders[user] = sorted({*orders[user], number})
            await send(user, [number])

    @app.agent(records["users"])
    async def take_users(stream: Any) -> None:
        async for event in stream.events():
            user = event.key.decode()
            addresses[user] = event.value.decode()
            await send(user, orders[user])


def join_global(app: faust.App, records: Topics, out: Topic) -> None:
    """Orders with the origin of their item: every worker has all items, and no order moves."""
    items = app.GlobalTable("all-items", partitions=1)

    @app.agent(records["items"])
    async def take_items(stream: Any) -> None:
        async for event in stream.events():
            items[event.key.decode()] = event.value.decode()

    @app.agent(records["orders"])
    async def join(stream: Any) -> None:
        async for event in stream.events():
            user, item = event.key.decode(), event.value.decode()
            if item in items:
                await out.send(value={"user": user, "item": item, "origin": items[item]})


def join_repartitioned(app: faust.App, records: Topics, out: Topic) -> None:
    """The same with the orders sent to the partition of their item: for more items than a worker
    can hold."""
    items = keep_last(app, records["items"])
    by_item = make_topic(app, "orders-by-item")

    @app.agent(records["orders"])
    async def send_by_item(stream: Any) -> None:
        async for event in stream.events():
            await by_item.send(key=event.value, value=event.key)

    @app.agent(by_item)
    async def join(stream: Any) -> None:
        async for event in stream.events():
            item, user = event.key.decode(), event.value.decode()
            if item in items:
                await out.send(value={"user": user, "item": item, "origin": items[item]})


def keep_last(app: faust.App, topic: Topic) -> Any:
    """The last value of each key."""
    values = app.Table("last")

    @app.agent(topic)
    async def keep(stream: Any) -> None:
        async for event in stream.events():
            values[event.key.decode()] = event.value.decode()

    return values
