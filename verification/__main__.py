"""`make verify`: what takes longer than `make test` has time for, part by part, and one table.

A part is the tests with its mark (`@pytest.mark.verify(part="reprocess")`), the campaign of its
name, or both. A part that fails does not stop the others; nothing is tried twice.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from local_stack.progress import Tone, duration, table, tell
from local_stack.settings import CHECKOUT

CAMPAIGNS: Mapping[str, Sequence[str]] = {
    "stress": ("--seeds", "3"),
    "saga": ("--interleavings", "2000"),
    "fuzz": ("--cases", "2000"),
    "crashes": ("--seeds", "3"),
    "differential": ("--seeds", "3"),
    "drill": ("--quick",),
}
"""With options that keep each to minutes; `make stress` and the others run the whole ones."""
CONTAINERS = "containers"
"""All end-to-end tests, on a stack in containers."""
PARTS = (
    *CAMPAIGNS,
    *("lost-records", "reprocess", "faust", "lessons", "end-to-end", "tour"),
    *("new", "copies", "benchmarks"),
    CONTAINERS,
)
WORKERS = "2"
ENGINE_SECONDS_MAX = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a part found; a campaign counts as one test."""

    part: str
    passed: int = 0
    failed: int = 0
    seconds: float = 0
    skipped_because: str = ""


def main() -> int:
    """The exit status: 0 if no part failed, 1 otherwise."""
    parts = parser().parse_args().only
    results = []
    for number, part in enumerate(parts, 1):
        tell(f"\npart {number} of {len(parts)}: {part}")
        results.append(run(part))
    rows = [
        (each.part, str(each.passed), str(each.failed), f"{each.seconds:.0f}", each.skipped_because)
        for each in results
    ]
    failed = any(each.failed for each in results)
    whole = duration(sum(each.seconds for each in results))
    tell("\n" + table(("part", "passed", "failed", "seconds", ""), rows))
    if failed:
        tell(f"failed, in {whole}", Tone.BAD)
        return 1
    tell(f"all passed, in {whole}", Tone.GOOD)
    return 0


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="python -m verification", description=__doc__)
    root.add_argument(
        "--only",
        type=find_parts,
        default=PARTS,
        metavar="PART,PART",
        help=f"these parts: {', '.join(PARTS)}",
    )
    return root


def find_parts(names: str) -> tuple[str, ...]:
    """The parts of a list with commas.

    Raises:
        argparse.ArgumentTypeError: there is no such part.
    """
    found = tuple(names.split(","))
    for name in found:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(f"no part {name!r}; parts are {', '.join(PARTS)}")
    return found


def run(part: str) -> Result:
    """Run the tests of a part, then its campaign."""
    if part == CONTAINERS and not has_engine():
        return Result(part=part, skipped_because="skipped: no Docker engine responds")
    began_at = time.monotonic()
    passed, failed = run_tests(part)
    if part in CAMPAIGNS:
        command = [sys.executable, "-m", f"verification.{part}", *CAMPAIGNS[part]]
        status = subprocess.run(command, cwd=CHECKOUT).returncode
        passed, failed = passed + (status == 0), failed + (status != 0)
    return Result(part=part, passed=passed, failed=failed, seconds=time.monotonic() - began_at)


def has_engine() -> bool:
    if shutil.which("docker") is None:
        return False
    asked = subprocess.run(["docker", "info"], capture_output=True, timeout=ENGINE_SECONDS_MAX)
    return asked.returncode == 0


def run_tests(part: str) -> tuple[int, int]:
    """How many tests of a part passed and failed."""
    chosen = ["-n", WORKERS, "--no-loadscope-reorder", "-m", f"verify(part='{part}')"]
    way = {}
    if part == CONTAINERS:
        chosen, way = ["e2e-tests"], {"HOMETOWN_TEST_IN": CONTAINERS}
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "tests.xml")
        command = [sys.executable, "-m", "pytest", *chosen, f"--junit-xml={written}"]
        status = subprocess.run(command, cwd=CHECKOUT, env=os.environ | way).returncode
        passed, failed = read_counts(written) if written.exists() else (0, 0)
    return passed, failed or int(status != 0)


def read_counts(path: Path) -> tuple[int, int]:
    """How many tests passed and failed, by the file that pytest writes."""
    [suite] = ElementTree.parse(path).getroot()
    tests, skipped = int(suite.attrib["tests"]), int(suite.attrib["skipped"])
    failed = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    return tests - skipped - failed, failed


if __name__ == "__main__":
    sys.exit(main())
