"""A history of the shop, and its answer by a plain loop."""

import random
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from test_support.analytics.histories import (
    HOUR,
    ORIGINS,
    PRICES,
    START,
    Event,
    confirmed,
    listed,
    moved,
    registered,
)

USERS = 1_000
HOURS = 12
ORDERS_PER_MOVE = 50
QUANTITY_MAX = 4
SEED = 5

LATE_SINCE = HOUR + timedelta(hours=HOURS - 2, minutes=30, milliseconds=1)
LATE_MOVERS = 200
"""Users who moved at LATE_SINCE, which becomes known after all orders."""
GRACE = timedelta(hours=2)
"""After the end of an hour, until it is closed."""
LAST = HOUR + timedelta(hours=HOURS + 24)
"""When the last order is placed, by a user who is not known. It closes all hours."""

Totals = tuple[int, int, int, int]
"""Local buyers, purchases, quantity and cents."""
Hours = Mapping[str, Totals]

Homes = Mapping[str, Sequence[tuple[datetime, str]]]
"""Of each user, since when they lived where, sorted."""


class Purchase(NamedTuple):
    order: str
    user: str
    item: str
    quantity: int
    ordered_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Events in the order in which they become known: facts, orders, late moves, a last order.

    `before` is what is right before the late moves are known, `after` what is right afterwards, and
    `closed` are the hours of `before` that no late order can change.
    """

    facts: Sequence[Event]
    orders: Sequence[Event]
    late: Sequence[Event]
    last: Event
    before: Hours
    after: Hours
    closed: Hours


def make_history(orders: int) -> History:
    """Orders spread over HOURS, at least one, of users who move meanwhile. The same each time."""
    chance = random.Random(SEED)
    places, items = sorted(ORIGINS.values()), sorted(PRICES)
    homes = {f"user {number}": [(START, chance.choice(places))] for number in range(USERS)}
    users = list(homes)
    purchases = []
    for number in range(orders):
        ordered_at = HOUR + timedelta(hours=HOURS) * number / orders
        if number % ORDERS_PER_MOVE == 0:
            homes[chance.choice(users)].append((ordered_at, chance.choice(places)))
        purchases.append(
            Purchase(
                order=f"order {number}",
                user=chance.choice(users),
                item=chance.choice(items),
                quantity=chance.randint(1, QUANTITY_MAX),
                ordered_at=ordered_at,
            )
        )
    late = {user: (LATE_SINCE, chance.choice(places)) for user in users[:LATE_MOVERS]}
    last = Purchase(order="the last", user="unknown", item=items[0], quantity=1, ordered_at=LAST)
    before = count_hours(purchases, homes)
    open_since = to_hour(purchases[-1].ordered_at - GRACE)
    return History(
        facts=[*map(listed, items), *(fact for user in users for fact in to_facts(user, homes))],
        orders=list(map(to_event, purchases)),
        late=[
            moved(user, place, since=since, version=len(homes[user]) + 1)
            for user, (since, place) in late.items()
        ],
        last=to_event(last),
        before=before,
        closed={hour: totals for hour, totals in before.items() if hour < open_since},
        after=count_hours(
            purchases,
            homes | {user: sorted([*homes[user], version]) for user, version in late.items()},
        ),
    )


def count_hours(purchases: Iterable[Purchase], homes: Homes) -> Hours:
    """For every hour, the purchases from where their user lived when they ordered."""
    buyers: dict[str, set[str]] = {}
    totals: dict[str, tuple[int, int, int]] = {}
    for _, user, item, quantity, ordered_at in purchases:
        known = bisect_right(homes[user], ordered_at, key=lambda version: version[0])
        _, place = homes[user][known - 1]
        if place != ORIGINS[item]:
            continue
        hour = to_hour(ordered_at)
        buyers.setdefault(hour, set()).add(user)
        count, pieces, cents = totals.get(hour, (0, 0, 0))
        price = int(PRICES[item].replace(".", ""))
        totals[hour] = (count + 1, pieces + quantity, cents + quantity * price)
    return {hour: (len(buyers[hour]), *totals[hour]) for hour in totals}


def to_facts(user: str, homes: Homes) -> list[Event]:
    """The registration of a user, and the moves."""
    (since, place), *later = homes[user]
    return [
        registered(user, place, since=since),
        *(
            moved(user, place, since=since, version=version)
            for version, (since, place) in enumerate(later, start=2)
        ),
    ]


def to_event(purchase: Purchase) -> Event:
    line = (purchase.item, purchase.quantity)
    return confirmed(purchase.order, purchase.user, line, ordered_at=purchase.ordered_at)


def to_hour(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:00:00")
