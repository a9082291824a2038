"""The drill's ledger finds what is lost and what is there twice; its rows show it."""

from dataclasses import replace

import httpx
import pytest

from verification.drill.ledger import Ledger, Stored, compare, count
from verification.drill.rows import Row, as_figures, format_table
from verification.drill.traffic import Recovery, demand_temporary, is_overloaded

DECIDED = ["order-placed", "order-confirmed"]
LEDGER = Ledger(orders={"one", "two"})
LEDGER.moves["jack"] = 2
STORED = Stored(orders={"one": DECIDED, "two": DECIDED}, moves={"jack": 2}, counted=2)
GOOD = Row(
    step="kill-job", is_planned=False, requests=10, recovery=Recovery(decided=0.5, counted=14.25)
)


def test_nothing_is_found_when_all_is_recorded_and_counted() -> None:
    assert compare(LEDGER, STORED) == []


@pytest.mark.parametrize(
    ("stored", "lost", "twice"),
    [
        (replace(STORED, orders={"one": DECIDED}, counted=1), 1, 0),
        (replace(STORED, orders={**STORED.orders, "three": DECIDED}, counted=3), 0, 1),
        (replace(STORED, orders={**STORED.orders, "two": ["order-placed"]}, counted=1), 1, 0),
        (replace(STORED, moves={}), 2, 0),
        (replace(STORED, moves={"jack": 3}), 0, 1),
        (replace(STORED, counted=1), 1, 0),
        (replace(STORED, counted=4), 0, 2),
        (replace(STORED, unbalanced=["order one holds 1.00"]), 1, 0),
    ],
    ids=[
        *("an order", "an order twice", "a decision"),
        *("moves", "a move twice", "a count", "counts", "credit"),
    ],
)
def test_a_difference_is_found(stored: Stored, lost: int, twice: int) -> None:
    found = compare(LEDGER, stored)

    assert (count(found, "lost"), count(found, "twice")) == (lost, twice)


def test_a_loss_is_found_once() -> None:
    ledger, stored = LEDGER.copy(), replace(STORED, orders={"one": DECIDED}, counted=0)
    assert compare(ledger, stored)

    ledger.adopt(stored)

    assert compare(ledger, stored) == []
    assert LEDGER.orders == {"one", "two"}, "a copy was changed"


def test_a_failed_request_is_wrong_in_a_planned_operation_only() -> None:
    assert replace(GOOD, failed=1).is_good
    assert not replace(GOOD, failed=1, is_planned=True).is_good
    for wrong in ({"lost": 1}, {"twice": 1}, {"problems": ["it did not recover"]}):
        assert not replace(GOOD, **wrong).is_good


def test_an_order_that_is_refused_because_others_wait_has_not_failed() -> None:
    request = httpx.Request("POST", "http://orders/v1/orders")
    refused = httpx.Response(503, json={"code": "overloaded"}, request=request)
    unavailable = httpx.Response(503, json={"code": "unavailable"}, request=request)

    assert (is_overloaded(refused), demand_temporary(refused)) == (True, "")
    assert (is_overloaded(unavailable), demand_temporary(unavailable)) == (False, "503")


def test_every_step_is_in_the_table_and_those_that_were_done_are_figures() -> None:
    rows = [GOOD, Row(step="upgrade", is_planned=False, skipped="there is no release")]

    assert "skipped: there is no release" in format_table(rows)
    assert {each.name: each.value for each in as_figures(rows)} == {
        "lost, kill-job": 0,
        "twice, kill-job": 0,
        "failed, kill-job": 0,
        "seconds to decide, kill-job": 0.5,
        "seconds to count, kill-job": 14.2,
    }
