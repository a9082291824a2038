"""A short `make drill` without Spark: two steps lose nothing, and a loss is found."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fetching.errors import Failure
from shared.runtime.identifiers import new_id
from verification.drill.campaign import do, open_traffic, parser, play, report
from verification.drill.drilled_stack import DRILLED, JOB, DrilledStack, drilled_stack
from verification.drill.rows import Row
from verification.drill.steps import Drill, Step
from verification.drill.traffic import Recovery

pytestmark = pytest.mark.verify(part="drill")

STEPS = ("replace-api", "join-worker", "freeze-worker", "kill-relay", "hostile-records")
UNCHANGED_SECONDS_MAX = 8
WITHOUT_SPARK = replace(
    DRILLED,
    processes=tuple(
        each for each in DRILLED.processes if each.name not in (JOB, "analytics-reconciler")
    ),
)


@pytest.fixture(scope="module")
def stack() -> Iterator[DrilledStack]:
    with drilled_stack(WITHOUT_SPARK) as stack:
        yield replace(stack, unchanged_seconds_max=UNCHANGED_SECONDS_MAX)


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the figures go."""
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(tmp_path))
    return tmp_path


def test_nothing_is_lost_and_no_planned_replacement_fails_a_request(
    stack: DrilledStack, run_folder: Path
) -> None:
    options = parser().parse_args(["--quick", "--steps", ",".join(STEPS)])

    rows = asyncio.run(play(stack, run_folder, options))

    assert [row.step for row in rows] == [*STEPS]
    assert all(row.requests for row in rows)
    assert report(rows, wrong=[]) == 0, rows
    assert (run_folder / "bench" / "drill.json").exists()


def test_an_order_that_was_never_placed_is_lost(stack: DrilledStack, run_folder: Path) -> None:
    """The negative control: a ledger with one order too many."""

    async def forge(drill: Drill) -> Recovery:
        drill.traffic.ledger.orders.add(str(new_id()))
        return await drill.traffic.recover()

    step = Step(name="forge", does="forget an order", play=forge)
    row = asyncio.run(play_one(step, stack, run_folder))

    assert (row.lost, row.twice) == (1, 0)
    assert report([row], wrong=[]) == 1


async def play_one(step: Step, stack: DrilledStack, folder: Path) -> Row:
    async with open_traffic(stack, seed=2, clients=1) as traffic:
        return await do(step, Drill(stack=stack, traffic=traffic, folder=folder))


@pytest.mark.parametrize("is_planned", [True, False])
def test_a_planned_operation_refuses_no_order(
    stack: DrilledStack, run_folder: Path, is_planned: bool
) -> None:
    async def refuse(drill: Drill) -> Recovery:
        drill.traffic.tally.overloaded += 1
        return await drill.traffic.recover()

    step = Step(name="refuse", does="refuse an order", play=refuse, is_planned=is_planned)
    row = asyncio.run(play_one(step, stack, run_folder))

    assert row.is_good != is_planned


def test_a_step_that_cannot_be_done_ends_the_drill(stack: DrilledStack, run_folder: Path) -> None:
    async def explode(drill: Drill) -> Recovery:
        raise Failure("no more processes")

    options = parser().parse_args(["--quick"])
    options.steps = [Step(name="explode", does="fail", play=explode)] * 2

    rows = asyncio.run(play(stack, run_folder, options))

    assert [row.problems for row in rows] == [["the drill ends: no more processes"]]
    assert report(rows, wrong=[]) == 1


def test_an_unknown_step_is_refused() -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--steps", "explode"])
