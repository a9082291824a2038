"""Random histories in which no user moves and no origin is corrected."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from test_support.analytics.histories import (
    ORIGINS,
    PRICES,
    Event,
    at,
    cancelled,
    confirmed,
    listed,
    registered,
)

PLACES = sorted(ORIGINS.values())
PEOPLE = 12
MINUTES = 110
"""Less than the lateness of Spark, so that it drops no order."""

Lines = tuple[tuple[str, int], ...]
Totals = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    user: str
    minute: int
    lines: Lines


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Events in an order in which every user is known before they buy, and the orders that remain.

    Some orders are cancelled, some records are repeated, and times jump back and forth.
    """

    events: list[Event]
    homes: Mapping[str, str]
    kept: Mapping[str, Order]

    def hour(self, number: int) -> Totals:
        """Local buyers, purchases, quantity and cents, counted by a plain loop."""
        local = [
            (bought.user, quantity, quantity * int(PRICES[item].replace(".", "")))
            for bought in self.kept.values()
            for item, quantity in bought.lines
            if bought.minute // 60 == number and self.homes[bought.user] == ORIGINS[item]
        ]
        return (
            len({user for user, _, _ in local}),
            len(local),
            sum(quantity for _, quantity, _ in local),
            sum(cents for _, _, cents in local),
        )

    def cancellations(self) -> list[Event]:
        """Events that cancel all remaining orders."""
        return [
            cancelled(order, bought.user, *bought.lines, ordered_at=at(bought.minute))
            for order, bought in self.kept.items()
        ]


def history(seed: int, orders: int) -> History:
    chance = random.Random(seed)
    homes = {f"user {number}": chance.choice(PLACES) for number in range(PEOPLE)}
    facts = [registered(user, home) for user, home in homes.items()]
    facts += [listed(item) for item in PRICES]
    chance.shuffle(facts)
    kept: dict[str, Order] = {}
    events: list[Event] = []
    for number in range(orders):
        order = f"order {number}"
        bought = random_order(chance)
        when: datetime = at(bought.minute)
        event = confirmed(order, bought.user, *bought.lines, ordered_at=when)
        kept[order] = bought
        events += [event] * chance.choice([1, 1, 1, 1, 2])
        if chance.random() < 0.2:
            gone = chance.choice(list(kept))
            lost = kept.pop(gone)
            events.append(cancelled(gone, lost.user, *lost.lines, ordered_at=at(lost.minute)))
        if chance.random() < 0.05:
            events += events[-3:]
    numbered = [
        replace(event, number=number) for number, event in enumerate(facts + events, start=1)
    ]
    return History(events=numbered, homes=homes, kept=kept)


def random_order(chance: random.Random) -> Order:
    return Order(
        user=f"user {chance.randrange(PEOPLE)}",
        minute=chance.randrange(MINUTES),
        lines=tuple(
            (chance.choice(list(PRICES)), chance.randrange(1, 9))
            for _ in range(chance.randrange(1, 4))
        ),
    )
