"""Learn by exercises: each save of a program is checked, and a solved one leads to the next."""

import os
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from lessons.exercises import ENGINE, Exercise, Verdict
from lessons.experiment import Findings
from lessons.lab import Lab
from lessons.report import print_case, print_findings
from lessons.running import Outcome
from local_stack.progress import Tone, tell

POLL_SECONDS = 0.1
LINE_CHARACTERS_MAX = 96


def learn(lab: Lab, exercises: Sequence[Exercise]) -> None:
    """Go through the exercises, and return when all of them are solved."""
    for exercise in exercises:
        print_task(exercise, is_new=exercise.copy())
        # Opened first: a save during the check counts.
        saves = watch(exercise.path)
        if check(lab, exercise):
            continue
        tell(f"{exercise.lesson.name}: what checks it warms up, so that each save is soon checked")
        exercise.warm_up(lab)
        tell(f"{show_path(exercise.path)} is checked when you save it; Ctrl-C ends")
        for _ in saves:
            if check(lab, exercise):
                break
    tell("\nall exercises are solved", Tone.GOOD)


def print_task(exercise: Exercise, *, is_new: bool) -> None:
    lesson = exercise.lesson
    tell(f"\n{lesson.name}: {lesson.title}")
    tell(f"  read   lessons/{lesson.name}/README.md")
    tell(f"  write  {show_path(exercise.path)}{'' if is_new else ', which is there already'}")


def check(lab: Lab, exercise: Exercise) -> bool:
    """Whether the program is solved. Prints what is as expected, and the first case that is not."""
    began_at = time.monotonic()
    name = exercise.lesson.name
    tell("")
    for verdict in exercise.check(lab):
        if not verdict.is_right:
            print_wrong(verdict, exercise)
            return False
        tell(f"{name}: {verdict.task.name} is as expected", Tone.GOOD)
    tell(f"{name} is solved, {time.monotonic() - began_at:.1f} s", Tone.GOOD)
    files = ", ".join(f"lessons/{name}/{path.name}" for path in exercise.solutions)
    tell(f"  compare  {files}")
    tell(f"  discuss  lessons/{name}/DISCUSSION.md")
    return True


def print_wrong(verdict: Verdict, exercise: Exercise) -> None:
    task, name = verdict.task, exercise.lesson.name
    if verdict.is_unwritten:
        tell(f"{name}: {task.function} is still to write", Tone.POOR)
        return
    if isinstance(verdict.found, Outcome):
        print_case(verdict.found.case, [verdict.found], {ENGINE: "yours"})
        tell("")
    if isinstance(verdict.found, Findings):
        print_findings(verdict.found.claims)
        tell("")
    tell(f"{name}: {task.name}, {verdict.problem}", Tone.BAD)
    if not verdict.needs_hint:
        return
    for line in textwrap.wrap(f"hint: {exercise.get_hint(task)}", LINE_CHARACTERS_MAX):
        tell(f"  {line}")


def watch(path: Path) -> Iterator[None]:
    """Yield after each change of a file since the iterator was made.

    It waits as long as the learner thinks. A file that is gone while an editor replaces it has not
    changed.
    """

    def changes(seen: int) -> Iterator[None]:
        while True:
            time.sleep(POLL_SECONDS)
            now = get_saved_at(path)
            if now is not None and now != seen:
                seen = now
                yield

    return changes(get_saved_at(path) or 0)


def get_saved_at(path: Path) -> int | None:
    """Nanoseconds since 1970; None if there is no such file."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def show_path(path: Path) -> str:
    """Relative to where the verb was called, if it is below."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
