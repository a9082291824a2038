"""The parts of the benchmark `delivery`, in the order in which they run."""

from benchmarks.delivery import (
    appending,
    confirming,
    consuming,
    delivery_times,
    draining,
    failing_over,
    folding,
    hot_user,
    neighbours,
    placing,
)
from benchmarks.delivery.sizes import FULL, QUICK, TINY, Size
from benchmarks.part import Benchmark

DELIVERY: Benchmark[Size] = Benchmark(
    name="delivery",
    parts=(
        appending.PART,
        draining.PART,
        delivery_times.PART,
        failing_over.PART,
        consuming.PART,
        hot_user.PART,
        folding.PART,
        placing.PART,
        confirming.PART,
        neighbours.PART,
    ),
    sizes={"full": FULL, "quick": QUICK, "tiny": TINY},
)
