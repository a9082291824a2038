"""Final hours match the event stores, and a tampered row raises an alarm."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

import asyncpg
import pyarrow.compute as pc
import pytest
from pyarrow import dataset

from local_stack.postgres import RECONCILER
from shared.runtime import log_lines
from test_support.system.clients import Hometown
from test_support.system.eventually import eventually
from test_support.system.sample import HOUR, Sample
from test_support.system.stack import Stack

pytestmark = pytest.mark.verify(part="end-to-end")

ONLY_HERE = "args=--hours 4"
"""The sample's hour and what came after it: other tests have hours of their own."""

REFUSED = ["SELECT * FROM user_profiles", "DELETE FROM events", "SELECT * FROM idempotency_keys"]


@pytest.fixture
def final_sample(hometown: Hometown, sample: Sample, hours_later: Iterator[timedelta]) -> Sample:
    """The sample, and later orders that make its hour final."""
    later = HOUR + next(hours_later)

    def watermark() -> datetime | None:
        value = hometown.status()["watermark"]
        return datetime.fromisoformat(value) if value else None

    def buy(minute: int) -> None:
        at = later + timedelta(minutes=minute)
        order = hometown.place_order(sample.users["Jack"], [(sample.items["iphone"], 1)], at)
        hometown.wait_for_decision(order["order_id"])

    eventually(
        lambda: hometown.hour(sample.hour)["purchases"],
        lambda seen: seen == 4,
        what="the sample counted",
    )
    buy(1)
    eventually(
        lambda: hometown.hour(later)["purchases"], lambda seen: seen == 1, what="the later order"
    )
    buy(2)
    eventually(
        watermark,
        lambda seen: seen is not None and seen >= sample.hour + timedelta(hours=1),
        what="the sample's hour final",
    )
    return sample


def test_a_tampered_row_is_found_by_the_verb_and_by_the_hourly_comparison(
    stack: Stack, hometown: Hometown, final_sample: Sample
) -> None:
    assert "all equal" in stack.make_output("reconcile", ONLY_HERE)

    tamper(stack, final_sample, 1)
    try:
        found = stack.make("reconcile", ONLY_HERE)
        assert found.returncode != 0
        assert f"{final_sample.hour:%Y-%m-%dT%H} user {final_sample.users['Jack']}" in found.stdout
        assert "1 cells differ" in found.stdout
        alarm = eventually(
            lambda: hometown.status()["reconciliation"]["hours"],
            lambda hours: final_sample.hour in [datetime.fromisoformat(each) for each in hours],
            what="the difference shown",
        )
        assert len(alarm) >= 1
        written = map(log_lines.parse, stack.logs()["analytics-reconciler"].splitlines())
        errors = [str(line["message"]) for line in written if line and line["level"] == "error"]
        assert any(each.startswith("a cell differs from the event stores") for each in errors)
    finally:
        tamper(stack, final_sample, -1)

    assert "all equal" in stack.make_output("reconcile", ONLY_HERE)


def tamper(stack: Stack, sample: Sample, cents: int) -> None:
    """Change the amount that Jack has paid."""
    changed = stack.fetch(
        "analytics",
        f"UPDATE {stack.cells} SET cents = cents + $3"
        " WHERE hour = $1 AND user_id = $2 RETURNING cents",
        sample.hour,
        sample.users["Jack"],
        cents,
    )
    assert len(changed) == 1


def test_final_hours_are_exported_as_files(stack: Stack, final_sample: Sample) -> None:
    """Read as in the README of analytics-spark."""
    assert " written, " in stack.make_output("export")
    name = f"hour={final_sample.hour:%Y-%m-%dT%H}"
    cells = dataset.dataset(stack.exported() / name / "cells.parquet", format="parquet").to_table()
    local = cells.filter(pc.not_equal(cells["user_id"], ""))
    assert sum(local["amount"].to_pylist()) == Decimal("44506.56")
    assert sum(cells["amount"].to_pylist()) == Decimal("203588.40")

    printed = stack.make_output("export")
    assert "0 removed" in printed


@pytest.mark.parametrize("statement", REFUSED)
async def test_the_comparison_has_rights_to_read_events_and_nothing_else(
    stack: Stack, statement: str
) -> None:
    connection = await asyncpg.connect(stack.dsn(RECONCILER, "users"))
    try:
        assert await connection.fetchval("SELECT count(*) FROM events") > 0
        with pytest.raises(
            (asyncpg.InsufficientPrivilegeError, asyncpg.ReadOnlySQLTransactionError)
        ):
            await connection.execute(statement)
    finally:
        await connection.close()
