"""Random histories: however the input is cut and ordered, the cells are those of a plain loop."""

import random
from dataclasses import dataclass, field, replace

import pytest

from analytics_spark.job.cells import HOUR_MILLISECONDS
from test_support.analytics.histories import (
    ORIGINS,
    PRICES,
    TYPES,
    Event,
    at,
    cancelled,
    confirmed,
    deleted,
    id_of,
    listed,
    moved,
    origin_corrected,
    registered,
)
from test_support.analytics.small_job import Amounts, Cell, SmallJob, milliseconds

PLACES = sorted(set(ORIGINS.values()))
PEOPLE = [f"user {number}" for number in range(12)]
ORDERS = 150
MINUTES = 110
"""Less than the lateness: nothing of a history is dropped, whatever its order."""


@dataclass
class History:
    """Events by the stream whose order Kafka keeps, and their final meaning."""

    random: random.Random
    users: dict[str, list[tuple[int, int, str | None]]] = field(default_factory=dict)
    items: dict[str, list[tuple[int, int, str | None]]] = field(default_factory=dict)
    orders: list[tuple[str, str, int, list[tuple[str, int]]]] = field(default_factory=list)
    streams: list[list[Event]] = field(default_factory=list)

    def make(self) -> "History":
        for user in PEOPLE:
            self.make_user(user)
        for item in PRICES:
            self.make_item(item)
        for number in range(ORDERS):
            self.make_order(f"order {number}")
        return self

    def make_user(self, user: str) -> None:
        """Half of them are registered after some of their orders' times."""
        first = self.random.choice([-60, self.random.randrange(MINUTES)])
        place = self.random.choice(PLACES)
        events = [registered(user, place, since=at(first))]
        self.users[user] = [(first, 1, place)]
        for version in range(2, 2 + self.random.randrange(4)):
            since = self.random.randrange(-30, MINUTES)
            if self.random.random() < 0.15:
                events.append(deleted(user, since=at(since), version=version))
                self.users[user].append((since, version, None))
            else:
                place = self.random.choice(PLACES)
                events.append(moved(user, place, since=at(since), version=version))
                self.users[user].append((since, version, place))
        self.streams.append(events)

    def make_item(self, item: str) -> None:
        events = [listed(item, since=at(-60))]
        self.items[item] = [(-60, 1, ORIGINS[item])]
        for version in range(2, 2 + self.random.randrange(3)):
            since, origin = self.random.randrange(-60, MINUTES), self.random.choice(PLACES)
            events.append(origin_corrected(item, origin, since=at(since), version=version))
            self.items[item].append((since, version, origin))
        self.streams.append(events)

    def make_order(self, order: str) -> None:
        """Every fourth one is cancelled, and some records are repeated."""
        user, minute = self.random.choice(PEOPLE), self.random.randrange(MINUTES)
        lines = [
            (self.random.choice(list(PRICES)), self.random.randrange(1, 9))
            for _ in range(self.random.randrange(1, 4))
        ]
        events = [confirmed(order, user, *lines, ordered_at=at(minute))]
        if self.random.random() < 0.25:
            events.append(cancelled(order, user, *lines, ordered_at=at(minute)))
        else:
            self.orders.append((order, user, minute, lines))
        if self.random.random() < 0.1:
            events += events
        self.streams.append(events)

    def shuffled(self) -> list[Event]:
        """All events in an order that keeps the one of each stream."""
        turns = [index for index, stream in enumerate(self.streams) for _ in stream]
        self.random.shuffle(turns)
        queues = [iter(stream) for stream in self.streams]
        events = [next(queues[index]) for index in turns]
        return [replace(event, number=number) for number, event in enumerate(events, start=1)]

    def cells(self) -> dict[Cell, Amounts]:
        """The answer, order by order."""
        cells: dict[Cell, Amounts] = {}
        for _, user, minute, lines in self.orders:
            for item, quantity in lines:
                cell = self.cell(user, item, minute)
                cents = quantity * int(PRICES[item].replace(".", ""))
                old = cells.get(cell, (0, 0, 0))
                cells[cell] = (old[0] + 1, old[1] + quantity, old[2] + cents)
        return cells

    def cell(self, user: str, item: str, minute: int) -> Cell:
        hour = milliseconds(at(minute)) // HOUR_MILLISECONDS * HOUR_MILLISECONDS
        address, origin = as_of(self.users[user], minute), as_of(self.items[item], minute)
        type_ = TYPES[item] if origin else ""
        gender = "male" if address else ""
        if address and address == origin:
            return (hour, id_of(item), type_, address, gender, id_of(user))
        return (hour, "", type_, address or "", gender, "")


def as_of(versions: list[tuple[int, int, str | None]], minute: int) -> str | None:
    valid = [version for version in versions if version[0] <= minute]
    return max(valid)[2] if valid else None


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("buckets", [1, 4])
@pytest.mark.parametrize("batch_events", [1 << 30, 17])
def test_cells_are_a_function_of_the_set_of_events(
    seed: int, buckets: int, batch_events: int
) -> None:
    history = History(random.Random(seed)).make()
    events = history.shuffled()
    job = SmallJob(buckets=buckets)

    for start in range(0, len(events), batch_events):
        job.read(*events[start : start + batch_events])

    assert job.cells() == history.cells()
    assert job.tally["late"] == 0


def test_an_empty_history_would_prove_nothing() -> None:
    assert len(History(random.Random(0)).make().cells()) > 10
