"""The right answer for a shop's history, cell by cell, computed by sorting and searching."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MILLISECONDS_OF_AN_HOUR = 3_600_000

Integers = NDArray[np.int64]


class CellKey(NamedTuple):
    """What a cell is about: an hour, an item's type, and the place where buyers and items are."""

    hour: int
    """Seconds since 1970 at its beginning."""
    type: str
    place: str


class CellValue(NamedTuple):
    """The local purchases of a cell."""

    users: int
    purchases: int
    quantity: int
    cents: int


Cells = dict[CellKey, CellValue]
"""Cells without purchases are not there."""


@dataclass(slots=True)
class Places:
    """The places of users or of items, each since a time, in the order of their publication."""

    subjects: list[int] = field(default_factory=list)
    since: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    def add(self, subject: int, since: int, place: int) -> None:
        self.subjects.append(subject)
        self.since.append(since)
        self.places.append(place)

    def find(self, subjects: Integers, times: Integers) -> Integers:
        """Find the place of each subject at its time: of equal times the one published last.

        Each subject needs a place that is older than all of its times.
        """
        order = np.lexsort((self.since, self.subjects))
        first = min(self.since)
        span = int(max(times.max(), max(self.since))) - first + 1
        known = np.array(self.subjects)[order] * span + np.array(self.since)[order] - first
        found = np.searchsorted(known, subjects * span + times - first, side="right") - 1
        return np.array(self.places)[order][found]


class Purchases(NamedTuple):
    """Orders of one line each, as columns."""

    users: Integers
    items: Integers
    times: Integers
    """Milliseconds since the history's beginning."""
    quantities: Integers
    prices: Integers
    """Cents of one piece."""


def count(
    purchases: Purchases, users: Places, items: Places, types: Integers, beginning: int
) -> Cells:
    """Count all local purchases: buyer and item were in the same place at the time of the order.

    `types` are those of the items; `beginning` is when the times begin, in seconds since 1970.
    """
    place = users.find(purchases.users, purchases.times)
    local = place == items.find(purchases.items, purchases.times)
    if not local.any():
        return {}
    user, item, time, quantity, price = (column[local] for column in purchases)
    hours, all_types, all_places = time // MILLISECONDS_OF_AN_HOUR, types[item], place[local]
    type_count, place_count = int(types.max()) + 1, int(max(users.places)) + 1
    cell = (hours * type_count + all_types) * place_count + all_places
    buyers = np.unique(np.stack((cell, user)), axis=1)[0]
    columns = (
        np.bincount(buyers, minlength=cell.max() + 1),
        np.bincount(cell),
        *(np.bincount(cell, weights).astype(np.int64) for weights in (quantity, quantity * price)),
    )
    return {
        CellKey(
            hour=beginning + int(number) // place_count // type_count * 3_600,
            type=f"type {number // place_count % type_count}",
            place=f"place {number % place_count}",
        ): CellValue(*(int(column[number]) for column in columns))
        for number in np.unique(cell)
    }


def to_cells(rows: Iterable[Mapping[str, Any]]) -> Cells:
    """Cells from the fields of their keys and values."""
    return {
        CellKey(*(row[name] for name in CellKey._fields)): CellValue(
            *(row[name] for name in CellValue._fields)
        )
        for row in rows
    }


def count_wrong(found: Cells, right: Cells) -> int:
    """Count the cells that are missing, that should not be there, or that have another value."""
    return sum(found.get(key) != right.get(key) for key in found.keys() | right.keys())


def count_misplaced(found: Cells, right: Cells) -> int:
    """Count the purchases that are missing in a cell, and those that are too many in one."""
    none = CellValue(0, 0, 0, 0)
    return sum(
        abs(found.get(key, none).purchases - right.get(key, none).purchases)
        for key in found.keys() | right.keys()
    )
