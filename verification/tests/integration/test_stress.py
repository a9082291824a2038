"""A short `make stress`: our relay passes, and the harness detects the flaws of simpler relays."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from test_support.waits import HANGS_AFTER_SECONDS

pytestmark = pytest.mark.verify(part="stress")

PROGRAM = "verification.stress"
OPTIONS = ("--seeds", "1", "--seconds", "4", "--writers", "32", "--streams", "20")

Figures = Mapping[str, float]


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    """The figures of one seed and both controls; the command must have succeeded."""
    folder = tmp_path_factory.mktemp("stress")
    ended = subprocess.run(
        [sys.executable, "-m", PROGRAM, *OPTIONS],
        env=os.environ | {"HOMETOWN_RUN_DIR": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    content = json.loads((folder / "bench" / "stress.json").read_text())
    return {figure["name"]: figure["value"] for figure in content}


@pytest.mark.parametrize(
    "wrong",
    [
        "lost",
        "phantom",
        "inversions",
        "broken links",
        "misremembered",
        "duplicates without a cause",
    ],
)
def test_killed_relays_and_brokers_leave_no_fault(figures: Figures, wrong: str) -> None:
    assert figures[f"ours {wrong}"] == 0


def test_the_run_was_hostile(figures: Figures) -> None:
    assert figures["ours committed"] > 0
    assert figures["ours races lost"] > 0
    assert figures["ours blows"] >= 4


def test_a_cursor_on_the_position_loses_events_under_the_same_writers(figures: Figures) -> None:
    assert figures["position lost"] > 0


def test_a_horizon_inverts_events_under_the_same_writers(figures: Figures) -> None:
    assert figures["horizon lost"] == 0
    assert figures["horizon inversions"] > 0
