"""`make check-cells`: the table equals a query over all records, and a tampered row is found."""

from collections.abc import Iterator
from contextlib import contextmanager

from test_support.system.clients import Hometown
from test_support.system.sample import HOUR, Sample
from test_support.system.stack import Stack

SHIFT = """
    UPDATE {cells} SET cents = cents + $1
    WHERE ctid = (
        SELECT ctid FROM {cells} WHERE user_id <> '' ORDER BY hour, user_id, item_id LIMIT 1
    )
"""


@contextmanager
def one_cent_more(stack: Stack) -> Iterator[None]:
    shift = SHIFT.format(cells=stack.cells)
    stack.fetch("analytics", shift, 1)
    try:
        yield
    finally:
        stack.fetch("analytics", shift, -1)


def test_the_table_equals_a_query_over_all_records(
    stack: Stack, hometown: Hometown, sample: Sample
) -> None:
    assert hometown.hour(HOUR)["all"]["purchases"] >= len(sample.orders)

    assert "cells: all are right" in stack.make_output("check-cells")


def test_a_cent_too_much_is_found(stack: Stack, sample: Sample) -> None:
    with one_cent_more(stack):
        checked = stack.make("check-cells")

    assert checked.returncode != 0
    assert "2 are wrong" in checked.stdout
