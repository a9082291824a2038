"""What the documents claim of other files holds there."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from test_support.waits import HANGS_AFTER_SECONDS

ROOT = Path(__file__).parents[3]
MAKEFILE = (ROOT / "Makefile").read_text()
ONLY_HERE = re.compile(
    r"^([a-z-]+):.*\n(?:\t.*\n)*?\t@\$\((?:LOCAL_STACK|STACK_OF_PROCESSES)\)", re.MULTILINE
)
ONLY_PROCESSES = {
    "backup": "to=/tmp/of-no-stack",
    "restore": "from=/tmp/of-no-stack",
    "dev": "name=nothing",
    "debug": "name=users-api",
}


def make(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["make", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )


@pytest.mark.parametrize("way", ["containers", "cluster"])
@pytest.mark.parametrize(("verb", "argument"), ONLY_PROCESSES.items())
def test_verbs_for_processes_refuse_another_way(verb: str, argument: str, way: str) -> None:
    """They would act on another stack than the one that was named (docs/containers.md)."""
    refused = make("--dry-run", verb, argument, f"in={way}")

    assert refused.returncode != 0
    assert f"make {verb} is for processes, not in={way}" in refused.stderr
    assert make("--dry-run", verb, argument).returncode == 0
    assert make("help", f"in={way}").returncode == 0


def test_no_other_verb_of_a_stack_is_for_processes_only() -> None:
    assert set(ONLY_HERE.findall(MAKEFILE)) == {"fetch", *ONLY_PROCESSES}


def test_macos_is_tested_as_the_readme_says() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    on_macos = {
        name: [step["run"] for step in job["steps"] if "run" in step]
        for name, job in workflow["jobs"].items()
        if "macos" in str(job.get("strategy", job["runs-on"]))
    }

    assert on_macos == {"processes": ["make test"]}
