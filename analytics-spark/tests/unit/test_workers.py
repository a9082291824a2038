"""The process that Spark forks its Python workers from."""

import subprocess
import sys

import pytest

from test_support.waits import HANGS_AFTER_SECONDS

COUNT = """
import gc, runpy
import pyspark.daemon

def count():
    gc.collect()
    print(gc.get_freeze_count(), len(gc.get_objects()))

pyspark.daemon.manager = count
runpy.run_module("analytics_spark.job.workers", run_name="__main__")
"""


@pytest.mark.parametrize(("before", "is_frozen"), [("", True), ("gc.freeze = int", False)])
def test_the_garbage_collector_does_not_visit_what_the_workers_have_imported(
    before: str, is_frozen: bool
) -> None:
    """A worker collects after each task, so that this would be most of what it does."""
    script = COUNT.replace("\n\n", f"\n{before}\n", 1)
    output = subprocess.check_output(
        [sys.executable, "-c", script], timeout=HANGS_AFTER_SECONDS, text=True
    )

    frozen, visited = map(int, output.split())
    assert (frozen > 10 * visited) is is_frozen
