"""The parts of the benchmark `analytics`, in the order in which they run."""

from benchmarks.analytics import cluster, event_to_row, rebuilding, state_growth, throughput
from benchmarks.analytics.job_sizes import FULL, QUICK, TINY, Size
from benchmarks.part import Benchmark

ANALYTICS: Benchmark[Size] = Benchmark(
    name="analytics",
    parts=(throughput.PART, event_to_row.PART, state_growth.PART, rebuilding.PART, cluster.PART),
    sizes={"full": FULL, "quick": QUICK, "tiny": TINY},
)
