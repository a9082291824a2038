"""The benchmark runs at the smallest size. No figure is judged here.

Only the part that needs no peer and little time: the other parts take minutes on two cores.
"""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

SECONDS_MAX = 300


def test_the_benchmark_measures_and_writes_figures(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks", "analytics", "--tiny", "--only", "latency"],
        env=os.environ | {"HOMETOWN_RUN_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    figures = json.loads((tmp_path / "bench" / "analytics-latency.json").read_text())
    assert len(figures) > 2
    for figure in figures:
        assert math.isfinite(figure["value"]), figure
        assert figure["name"] in run.stdout or "load average" in figure["name"]
