"""The end of a process that fails is one line of its log, which quotes nothing."""

import json
import subprocess
import sys

import pytest

SECRET = "Elm Street 7"

SCRIPT = """
import asyncio
from shared.runtime import processes
async def main():
    {statement}
processes.run(main())
"""


def run(statement: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", SCRIPT.format(statement=statement)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (f"ValueError({SECRET!r})", "the process ends: ValueError"),
        ("OSError(28, 'no space')", "the process ends: OSError: [Errno 28] no space"),
    ],
)
def test_an_unexpected_error_ends_a_process_with_one_line(error: str, message: str) -> None:
    ended = run(f"raise {error}")

    [line] = map(json.loads, ended.stderr.splitlines())
    assert (line["level"], line["message"]) == ("critical", message)
    assert line["exception"].startswith("Traceback")
    assert SECRET not in line["message"] + line["exception"].partition("\n")[2].rpartition("\n")[2]
    assert ended.returncode == 1


def test_an_expected_end_is_its_own_line() -> None:
    ended = run("raise SystemExit('hometown: not today')")

    assert (ended.returncode, ended.stderr) == (1, "hometown: not today\n")


def test_an_error_of_a_task_that_is_not_awaited_is_a_line() -> None:
    statement = f"asyncio.create_task(asyncio.to_thread(int, {SECRET!r})); await asyncio.sleep(0.2)"

    ended = run(statement)

    [line] = map(json.loads, ended.stderr.splitlines())
    assert line["message"] == "Task exception was never retrieved"
    assert SECRET not in ended.stderr


def test_a_level_that_is_none_is_one_line() -> None:
    ended = run("pass", LOG_LEVEL="LOUD")

    [line] = ended.stderr.splitlines()
    assert line.startswith("hometown: settings are wrong: LOG_LEVEL: Input should be 'DEBUG'")
