"""Every part of the benchmarks runs at the smallest size. No figure is judged here.

Of those of the analytics only the part that needs no peer and little time: the other parts take
minutes on two cores.
"""

import asyncio
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.analytics import event_to_row
from benchmarks.analytics.parts import ANALYTICS
from benchmarks.delivery import confirming, neighbours
from benchmarks.delivery.parts import DELIVERY
from benchmarks.delivery.sizes import Size
from benchmarks.part import Part
from benchmarks.series import as_figures
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import StackContext, StackSpec
from local_stack.testing import throwaway_stack
from test_support.waits import HANGS_AFTER_SECONDS

WITHOUT_JOB = replace(
    confirming.PART.spec,
    processes=tuple(
        each
        for each in confirming.PART.spec.processes
        if each.name not in ("analytics-job", "analytics-reconciler")
    ),
)
"""The rest of the stack confirms orders without it."""


OF_THE_WHOLE = [
    (confirming.PART, {"confirmed, p50", "CPU of orders-api, per order at that rate"}),
    (neighbours.PART, {"alone, p50"}),
]
"""Parts that need all processes, and some of their figures."""


@pytest.fixture(scope="module")
def servers() -> Iterator[StackContext]:
    """One PostgreSQL and one Kafka: each part makes its own databases and topics."""
    with throwaway_stack(StackSpec(processes=(POSTGRES, KAFKA))) as context:
        yield context


@pytest.mark.verify(part="benchmarks")
@pytest.mark.parametrize(
    "part",
    [part for part in DELIVERY.parts if part not in (confirming.PART, neighbours.PART)],
    ids=lambda part: part.name,
)
def test_each_part_of_delivery_measures(part: Part[Size], servers: StackContext) -> None:
    measured = asyncio.run(part.measure(servers, DELIVERY.sizes["tiny"]))

    assert all(math.isfinite(figure.value) for figure in as_figures(measured))
    assert any(each.ratio is not None for each in measured), "a figure has a limit"


@pytest.mark.verify(part="benchmarks")
@pytest.mark.parametrize(("part", "names"), OF_THE_WHOLE, ids=["confirming", "neighbours"])
def test_the_whole_measures_itself(part: Part[Size], names: set[str]) -> None:
    with throwaway_stack(WITHOUT_JOB) as context:
        measured = asyncio.run(part.measure(context, DELIVERY.sizes["tiny"]))

    assert all(math.isfinite(figure.value) for figure in as_figures(measured))
    assert {each.name for each in measured} >= names


@pytest.mark.verify(part="benchmarks")
def test_the_latency_of_the_job_measures(servers: StackContext) -> None:
    measured = asyncio.run(event_to_row.measure(servers, ANALYTICS.sizes["tiny"]))

    assert len(measured) > 2
    assert all(math.isfinite(figure.value) for figure in as_figures(measured))


def test_the_command_prints_and_writes_its_figures(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks", "delivery", "--tiny", "--only", "fold"],
        env=os.environ | {"HOMETOWN_RUN_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    figures = json.loads((tmp_path / "bench" / "delivery-fold.json").read_text())
    assert len(figures) > 2
    for figure in figures:
        assert math.isfinite(figure["value"]), figure
        assert figure["name"] in run.stdout or "load average" in figure["name"]
