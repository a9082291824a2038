"""A learner's reader is killed where each shortcut shows, and what fails in it is named."""

import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import psutil
import pytest
from pyspark.errors import StreamingQueryException

from lessons.committing import killing
from lessons.committing.crash import Crash
from lessons.committing.experiment import TRIALS, Trial, try_all
from lessons.committing.killing import kill_query
from lessons.exercises import Exercise, Verdict
from lessons.experiment import Findings
from lessons.lab import Lab
from lessons.lesson import Lesson
from test_support.first_and_long import first_and_long

LONG = pytest.mark.verify(part="lessons")
RIGHT = """
async def read_at_least_once(reader):
    async with reader.consume() as consumer:
        async for batch in reader.batches(consumer):
            for record in batch:
                await reader.process(record)
            await consumer.commit()
"""
READING = """
seen = set()
async def {name}(reader):
    async with reader.consume() as consumer:
        if {seeks}:
            consumer.seek(reader.partition, await reader.find_offset())
        async for batch in reader.batches(consumer):
{body}
"""


def make_program(name: str, body: str, *, seeks: bool = False) -> str:
    lines = [f"            {line}" for line in body.strip().splitlines()]
    return READING.format(name=name, seeks=seeks, body="\n".join(lines))


PROCESS = "for record in batch:\n    await reader.process(record)\n"
IN_TRANSACTION = "async with reader.connection.transaction():\n"
INNER = PROCESS.replace("for", "    for").replace("    await", "        await")
STORE = "await reader.store_offset(batch[-1].offset + 1)\n"
COMMIT = "await consumer.commit()\n"

AT_LEAST_ONCE = {
    "commits before": (COMMIT + PROCESS, "50 lost and 0 twice"),
    "never commits": (PROCESS, "0 lost and 150 twice"),
}
EXACTLY_ONCE = {
    "commits after": (PROCESS + COMMIT, False, "0 lost and 50 twice"),
    "forgets with the process": (
        "for record in batch:\n"
        "    if record.offset not in seen:\n"
        "        seen.add(record.offset)\n"
        "        await reader.process(record)\n" + COMMIT,
        False,
        "0 lost and 50 twice",
    ),
    "stores the offset after the effects": (PROCESS + STORE, True, "0 lost and 50 twice"),
    "stores the offset before the effects": (STORE + PROCESS, True, "50 lost and 0 twice"),
    "stores the offset after the transaction": (
        IN_TRANSACTION + INNER + STORE,
        True,
        "0 lost and 100 twice",
    ),
    "commits after the transaction": (
        IN_TRANSACTION + INNER + COMMIT,
        False,
        "0 lost and 100 twice",
    ),
    "commits in the transaction": (
        f"{IN_TRANSACTION}{INNER}    {COMMIT}",
        False,
        "100 lost and 0 twice",
    ),
    "stores the offset, and begins with the committed one": (
        f"{IN_TRANSACTION}{INNER}    {STORE}{COMMIT}",
        False,
        "0 lost and 100 twice",
    ),
    "stores the offset and commits in the transaction": (
        f"{IN_TRANSACTION}{INNER}    {STORE}    {COMMIT}",
        False,
        "100 lost and 0 twice",
    ),
    "stores the last offset": (
        f"{IN_TRANSACTION}{INNER}    {STORE.replace(' + 1', '')}",
        True,
        "0 lost and 1 twice",
    ),
}
ALSO_RIGHT = {
    "a commit for each record": (
        "for record in batch:\n"
        "    await reader.process(record)\n"
        "    await consumer.commit({reader.partition: record.offset + 1})\n",
        "for record in batch:\n"
        "    async with reader.connection.transaction():\n"
        "        await reader.process(record)\n"
        "        await reader.store_offset(record.offset + 1)\n",
    ),
    "by source": (PROCESS + COMMIT, PROCESS.replace("process", "process_by_source") + COMMIT),
}


@pytest.fixture
def exercise(tmp_path: Path) -> Exercise:
    exercise = Exercise(Lesson("committing"), tmp_path)
    exercise.copy()
    return exercise


def check(lab: Lab, exercise: Exercise, program: str) -> list[Verdict]:
    exercise.path.write_text(program)
    return list(exercise.check(lab))


@pytest.mark.parametrize("shortcut", first_and_long(AT_LEAST_ONCE, LONG))
def test_a_shortcut_to_at_least_once_is_red(lab: Lab, exercise: Exercise, shortcut: str) -> None:
    body, problem = AT_LEAST_ONCE[shortcut]

    (verdict,) = check(lab, exercise, make_program("read_at_least_once", body))

    assert isinstance(verdict.found, Findings)
    assert verdict.problem.endswith(problem)


@pytest.mark.parametrize("shortcut", first_and_long(EXACTLY_ONCE, LONG))
def test_a_shortcut_to_exactly_once_is_red(lab: Lab, exercise: Exercise, shortcut: str) -> None:
    body, seeks, problem = EXACTLY_ONCE[shortcut]
    program = make_program("read_exactly_once", body, seeks=seeks)

    first, second = check(lab, exercise, RIGHT + program)

    assert first.is_right
    assert isinstance(second.found, Findings)
    assert second.problem.endswith(problem)


@pytest.mark.parametrize("way", first_and_long(ALSO_RIGHT, LONG))
def test_another_right_program_is_green(lab: Lab, exercise: Exercise, way: str) -> None:
    at_least, exactly = ALSO_RIGHT[way]
    programs = [
        make_program("read_at_least_once", at_least),
        make_program("read_exactly_once", exactly, seeks="store_offset" in exactly),
    ]

    verdicts = check(lab, exercise, "".join(programs))

    assert [verdict.problem for verdict in verdicts] == ["", ""]


IN_GROUP = """
import asyncio
async def read_at_least_once(reader):
    async with asyncio.TaskGroup() as group:
        async def fail():
            1 / 0
        group.create_task(fail())
"""
WRONG = {
    make_program("read_at_least_once", "for record in batches:\n    pass"): (
        "committing.py:8: NameError: name 'batches' is not defined"
    ),
    "def read_at_least_once(reader):\n    pass\n": (
        "committing.py: TypeError: read_at_least_once is not defined with async def"
    ),
    "async def read_at_least_once(reader):\n    pass\n": (
        "committing.py: RuntimeError: read_at_least_once has no effect of number 150:"
    ),
    "async def read_at_least_once(reader):\n    exit(1)\n": (
        "committing.py:2: RuntimeError: it ends Python"
    ),
    RIGHT.replace("await reader.process", "reader.process"): (
        "committing.py: RuntimeError: line 6: coroutine 'Reader.process' was never awaited"
    ),
    IN_GROUP: "committing.py:6: ZeroDivisionError: division by zero",
    "import os\nasync def read_at_least_once(reader):\n    os.abort()\n": (
        "committing.py: RuntimeError: read_at_least_once ended with status -6"
    ),
}


@pytest.mark.parametrize("program", WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_one_line(
    lab: Lab, exercise: Exercise, program: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (verdict,) = check(lab, exercise, program)

    assert verdict.problem.startswith(WRONG[program])
    assert "\n" not in verdict.problem
    assert capfd.readouterr() == ("", "")


def test_a_program_that_does_not_end_is_ended(
    lab: Lab, exercise: Exercise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(killing, "PROGRAM_SECONDS_MAX", 2)

    (verdict,) = check(lab, exercise, "async def read_at_least_once(reader):\n    while True: 1\n")

    assert verdict.problem.endswith("TimeoutError: read_at_least_once has not ended in 2 s")
    assert find_lives() == []


CRASHES = [
    Crash(numbers=60, every=7, dies_after=31),
    Crash(numbers=60, every=1, dies_after=30),
    Crash(numbers=60, every=100, dies_after=20),
]


@pytest.mark.parametrize("crash", first_and_long(CRASHES, LONG), ids=range(len(CRASHES)))
def test_each_way_leads_to_what_follows_from_the_crash(lab: Lab, crash: Crash) -> None:
    trials = [trial for trial in TRIALS if trial.crash is None and "Spark" not in trial.name]

    findings = try_all(lab, trials, crash, "ways")

    assert [finding.difference for finding in findings] == [""] * len(trials)


def test_a_query_that_fails_by_itself_was_not_killed(lab: Lab) -> None:
    errors = [ValueError("no effect")]

    def fail_once(*_: object) -> None:
        if errors:
            raise errors.pop()

    trial = Trial(name="fails", level=TRIALS[-1].level, kill=partial(kill_query, write=fail_once))

    with pytest.raises(StreamingQueryException, match="no effect"):
        try_all(lab, [trial], CRASHES[0], "ways")


def test_an_interrupt_ends_the_process_and_removes_its_topics(
    lab: Lab, exercise: Exercise, find_topics: Callable[[], Sequence[str]]
) -> None:
    program = f"""
import os, time
async def read_at_least_once(reader):
    os.kill({os.getpid()}, {signal.SIGINT:d})
    time.sleep(600)
"""

    with pytest.raises(KeyboardInterrupt):
        check(lab, exercise, program)

    assert find_lives() == []
    assert find_topics() == []


def find_lives() -> Sequence[psutil.Process]:
    """Processes of readers that this one has started."""
    children = psutil.Process().children(recursive=True)
    return [each for each in children if "lessons.committing.child" in each.cmdline()]
