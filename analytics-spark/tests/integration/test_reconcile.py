"""Cells compared with the event stores: equal when unchanged, and each changed row is found."""

from collections.abc import Iterator

import psycopg
import pytest

from analytics_spark.reconciliation import reconcile
from analytics_spark.reconciliation.reconcile import NotComparable, Reconciliation
from local_stack.testing import Databases
from test_support.analytics.histories import (
    HOUR,
    at,
    cancelled,
    confirmed,
    id_of,
    moved,
    origin_corrected,
    sample,
)
from test_support.analytics.reconciled_world import World


@pytest.fixture
def world(databases: Databases, tables: str) -> Iterator[World]:
    with databases.create("shared") as users, databases.create("shared", "orders_svc") as orders:
        yield World(users, orders, tables)


def test_an_untouched_table_is_equal_whatever_was_corrected_in_time(world: World) -> None:
    world.batch(*sample())
    world.batch(confirmed("first", "Jack", ("ipad", 1), ordered_at=at(31)))
    world.batch(moved("Jack", "SH", since=at(30)), origin_corrected("ipod", "SZ", since=at(1 / 60)))
    world.batch(cancelled("Mike iwatch", "Mike", ("iwatch", 3), ordered_at=at(12 / 60)))

    result = world.finish().compare()

    assert result.differences == []
    assert (result.since, result.until) == (at(hour=-17), at(hour=7))
    assert result.purchases > 3
    assert result.undecided == 0


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE cells SET cents = cents + 1 WHERE user_id = '{jack}'",
        "UPDATE cells SET cents = cents - 1 WHERE user_id = '{jack}'",
        "UPDATE cells SET quantity = quantity - 1 WHERE user_id = '{jack}'",
        "UPDATE cells SET purchases = 2 WHERE user_id = '{jack}'",
        "DELETE FROM cells WHERE user_id = '{jack}'",
        "UPDATE cells SET gender = 'female' WHERE user_id = '{jack}'",
        "UPDATE cells SET hour = hour + interval '1 hour' WHERE user_id = '{jack}'",
    ],
    ids=["a cent more", "a cent less", "quantity", "purchases", "gone", "gender", "hour"],
)
def test_a_tampered_row_is_found(world: World, tampering: str) -> None:
    world.batch(*sample()).finish()
    world.change(tampering.format(jack=id_of("Jack")))

    found = world.compare().differences

    assert 1 <= len(found) <= 2
    assert {each.user_id for each in found} == {id_of("Jack")}
    assert min(each.hour for each in found) == HOUR


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE cells SET cents = cents + 1",
        "UPDATE cells SET quantity = quantity + 1",
        "UPDATE cells SET purchases = purchases + 1",
        "UPDATE cells SET address = address || 'X'",
        "DELETE FROM cells",
    ],
    ids=["cents", "quantity", "purchases", "address", "gone"],
)
def test_a_tampered_row_of_what_is_not_local_is_found(world: World, tampering: str) -> None:
    """The hours show these as well."""
    world.batch(*sample())
    world.batch(confirmed("not local", "Jack", ("iwatch", 1), ordered_at=at(31))).finish()
    assert world.compare().differences == []

    world.change(f"{tampering} WHERE user_id = '' AND hour < '{at(hour=1)}'")

    found = world.compare().differences
    assert found
    assert {each.user_id for each in found} == {""}


def test_an_invented_row_is_found(world: World) -> None:
    world.batch(*sample()).finish()
    world.change(
        "INSERT INTO cells SELECT hour, 'nobody', item_id, item_type, address, gender,"
        f" purchases, quantity, cents FROM cells WHERE user_id = '{id_of('Jack')}'"
    )

    [found] = world.compare().differences

    assert str(found) == (
        f"2016-11-11T00 user nobody, item {id_of('iphone')}, BJ: purchases 1, quantity 3, amount"
        " 16166.64, expected purchases 0, quantity 0, amount 0.00"
    )


def too_late(world: World) -> World:
    """An order, a cancellation and a move that the job reads when the hour is final."""
    world.batch(*sample())
    world.batch(confirmed("later", "Lily", ("ipad", 1), ordered_at=at(hour=5)))
    world.batch(confirmed("too late", "Jack", ("iphone", 1), ordered_at=at(51)))
    world.batch(cancelled("Mike iwatch", "Mike", ("iwatch", 3), ordered_at=at(12 / 60)))
    return world.batch(moved("Lucy", "SH", "female", since=at(0)))


def test_what_came_too_late_is_no_difference(world: World) -> None:
    result = too_late(world).finish().compare()

    assert result.differences == []
    assert result.undecided == 0


def test_without_the_notes_of_the_batches_it_would_be_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = reconcile.COMPARE.replace(
        "ELSE reading.watermark IS NULL OR purchases.ordered_at > reading.watermark", "ELSE true"
    )
    assert everything != reconcile.COMPARE
    monkeypatch.setattr(reconcile, "COMPARE", everything)

    found = too_late(world).finish().compare().differences

    assert {each.user_id for each in found} == {id_of("Jack"), id_of("Mike")}


def test_a_late_order_that_was_counted_all_the_same_is_found(world: World) -> None:
    too_late(world).finish()
    world.change(
        "UPDATE cells SET purchases = 2, quantity = 4, cents = cents + 538888"
        f" WHERE user_id = '{id_of('Jack')}'"
    )

    [found] = world.compare().differences

    assert (found.purchases, found.purchases_right) == (2, 1)


def test_purchases_of_deleted_batches_are_undecided_and_no_difference(
    world: World,
) -> None:
    too_late(world).finish()
    world.change("DELETE FROM batches WHERE batch_id < 6")

    result = world.compare()
    assert result.differences == []
    assert result.undecided > 0

    world.change(f"UPDATE cells SET cents = 1e9 WHERE user_id = '{id_of('Jack')}'")
    assert len(world.compare().differences) == 1


def test_before_an_hour_is_final_there_is_nothing_to_compare(world: World) -> None:
    assert world.batch(*sample()).compare() == Reconciliation(since=None, until=None)


def test_an_event_of_an_unknown_version_is_not_guessed(world: World) -> None:
    world.batch(*sample()).finish()
    with psycopg.connect(world.stores["users"]) as connection:
        connection.execute("UPDATE events SET schema_version = 2")

    with pytest.raises(NotComparable, match="user-registered has the unknown schema version 2"):
        world.compare()
