"""The right cells of a history are found by a search; here by a loop, and by hand."""

import random

import numpy as np

from benchmarks.analytics.true_cells import (
    MILLISECONDS_OF_AN_HOUR,
    CellKey,
    CellValue,
    Places,
    Purchases,
    count,
    count_misplaced,
    count_wrong,
)

SUBJECTS, TIMES, PLACES = 20, 50, 5
KEY = CellKey(hour=7_200, type="type 1", place="place 2")
VALUE = CellValue(users=2, purchases=3, quantity=7, cents=1_300)
OTHER_KEY = KEY._replace(hour=3_600)


def test_a_search_finds_the_place_that_was_valid() -> None:
    """Some changes are published late; of those with the same time, the last one is valid."""
    chance = random.Random(7)
    changes = [(subject, -1, subject % PLACES) for subject in range(SUBJECTS)] + [
        (chance.randrange(SUBJECTS), chance.randrange(TIMES), chance.randrange(PLACES))
        for _ in range(400)
    ]
    places = Places()
    for change in changes:
        places.add(*change)
    asked = [(chance.randrange(SUBJECTS), chance.randrange(TIMES)) for _ in range(500)]

    found = places.find(*map(np.array, zip(*asked, strict=True)))

    assert found.tolist() == [
        max(
            (since, number, place)
            for number, (of, since, place) in enumerate(changes)
            if of == subject and since <= time
        )[2]
        for subject, time in asked
    ]


def test_local_purchases_are_summed_by_hour_type_and_place() -> None:
    users, items = Places(), Places()
    for user in (0, 1):
        users.add(user, -1, 2)
    users.add(1, 2 * MILLISECONDS_OF_AN_HOUR, 0)
    items.add(0, -1, 2)
    hour = 2 * MILLISECONDS_OF_AN_HOUR
    purchases = [
        (0, 0, hour - 1, 1, 100),
        (0, 0, hour, 4, 200),
        (1, 0, hour - 1, 2, 300),
        (1, 0, hour, 1, 500),
    ]
    columns = Purchases(*map(np.array, zip(*purchases, strict=True)))

    cells = count(columns, users, items, np.array([1]), beginning=0)

    assert cells == {
        OTHER_KEY: CellValue(users=2, purchases=2, quantity=3, cents=700),
        KEY: CellValue(users=1, purchases=1, quantity=4, cents=800),
    }


def test_a_cell_is_wrong_that_is_missing_or_too_many_or_has_another_value() -> None:
    assert count_wrong({KEY: VALUE}, {KEY: VALUE}) == 0
    assert count_misplaced({KEY: VALUE}, {KEY: VALUE}) == 0
    assert count_wrong({KEY: VALUE}, {OTHER_KEY: VALUE}) == 2
    assert count_misplaced({KEY: VALUE}, {OTHER_KEY: VALUE}) == 6
    for name in CellValue._fields:
        assert count_wrong({KEY: VALUE._replace(**{name: 1})}, {KEY: VALUE}) == 1
    assert count_misplaced({KEY: VALUE._replace(purchases=1)}, {KEY: VALUE}) == 2
