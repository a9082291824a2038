"""Every part of the benchmark runs at the smallest size. No figure is judged here."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.delivery.parts import DELIVERY

SECONDS_MAX = 180


@pytest.mark.parametrize("part", [part.name for part in DELIVERY.parts])
def test_each_part_of_the_benchmark_measures_and_writes_figures(part: str, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks", "delivery", "--tiny", "--only", part],
        env=os.environ | {"HOMETOWN_RUN_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    figures = json.loads((tmp_path / "bench" / f"delivery-{part}.json").read_text())
    assert len(figures) > 2
    assert any(figure["ratio_to"] for figure in figures), "a figure has a limit"
    for figure in figures:
        assert math.isfinite(figure["value"]), figure
        assert figure["name"] in run.stdout or "load average" in figure["name"]
