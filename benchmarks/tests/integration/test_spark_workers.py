"""One worker of a Spark cluster and then two, with a rescale in between, count exactly."""

import asyncio
from collections.abc import Iterator

import pytest

from benchmarks.analytics import cluster
from benchmarks.analytics.job_sizes import TINY
from local_stack.stack_spec import StackContext
from local_stack.testing import throwaway_stack


@pytest.fixture(scope="module")
def context() -> Iterator[StackContext]:
    with throwaway_stack(cluster.PART.spec) as stack:
        yield stack


@pytest.mark.verify(part="benchmarks")
def test_one_worker_and_then_two_count_each_order_once(context: StackContext) -> None:
    """The measurement itself raises an error if a cell is wrong."""
    measured = asyncio.run(cluster.measure(context, TINY))

    assert all(min(each.rounds) > 0 for each in measured)
