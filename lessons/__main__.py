"""Lessons in streams: each a question, its records, and what Spark and Faust answer.

make lesson                              the list
make lesson name=windows                 both engines next to what must come out
make lesson name=windows on=spark        one of them
make lesson name=windows grace=0         with another value of a parameter, without a comparison
make lessons [on=spark]                  all of them with their controls, a line for each
make learn [name=windows] [folder=...]   their exercises, each save of which is checked
"""

import argparse
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from fetching.errors import Failure
from lessons.broker import find_broker
from lessons.exercises import COPIES, Exercise
from lessons.grid import write_grid
from lessons.lab import Lab
from lessons.learning import learn
from lessons.lesson import ENGINES, Engine, Lesson, find_lessons, read_title
from lessons.report import TITLES, print_case, print_verdict
from lessons.running import Result, answer, answer_all, get_functions, get_parameters
from local_stack.progress import complain, tell

NOT_PARAMETERS = ("name", "on")
"""Words of the command line that are no parameters of a lesson."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make lesson",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--all", action="store_true", help="run all lessons, and their controls")
    parser.add_argument("--learn", action="store_true", help="check exercises when they are saved")
    parser.add_argument(
        "words",
        nargs="*",
        metavar="name=...",
        help="name=LESSON, on=spark, PARAMETER=NUMBER, folder=FOLDER (of exercises)",
    )
    arguments = parser.parse_args()
    # A new broker has no coordinator of groups at first, and topics of a lesson do not stay.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        words = read_words(arguments.words)
        if arguments.learn:
            return run_exercises(words)
        if arguments.all:
            return run_all(read_engines(words))
        if not words:
            print_list()
            return 0
        return run(choose_lesson(words), read_engines(words), read_options(words))
    except Failure as failure:
        complain(str(failure))
        for line in failure.details:
            complain(f"  {line}")
        return 1
    except TimeoutError as error:
        complain(str(error))
        return 1
    except KeyboardInterrupt:
        complain("stopped")
        return 130


def read_words(words: Sequence[str]) -> Mapping[str, str]:
    """`name=windows` as a name and a value. Raises Failure."""
    pairs = [word.partition("=") for word in words]
    if wrong := [name for name, equals, _ in pairs if not equals]:
        raise Failure(f"{wrong[0]}: write it as name=value, such as name=windows")
    # Make's own variables, such as PYTHON, are in capitals.
    return {name: value for name, _, value in pairs if not name.isupper()}


def print_list() -> None:
    names = find_lessons()
    width = max(map(len, names))
    for name in names:
        tell(f"{name:{width}}  {read_title(name)}")
    tell("\nmake lesson name=... runs one of them, make lessons all")


def choose_lesson(words: Mapping[str, str]) -> Lesson:
    """The one to run, whose functions take the parameters. Raises Failure."""
    lesson = find_lesson(words.get("name", ""))
    taken = get_parameters(lesson)
    if wrong := sorted(words.keys() - {*NOT_PARAMETERS} - taken):
        takes = ", ".join(sorted(taken)) or "none"
        raise Failure(f"{lesson.name} has no parameter {wrong[0]}; its parameters: {takes}")
    return lesson


def find_lesson(name: str) -> Lesson:
    """Raises Failure."""
    known = find_lessons()
    if name not in known:
        missing = f"there is no lesson {name}" if name else "name=... is missing"
        raise Failure(f"{missing}: the lessons are {', '.join(known)}")
    return Lesson(name)


def run_exercises(words: Mapping[str, str]) -> int:
    """Those of all lessons, from one that is named. Raises Failure."""
    if wrong := sorted(words.keys() - {"name", "folder"}):
        raise Failure(f"exercises have no parameter {wrong[0]}: write name=... or folder=...")
    known = find_lessons()
    first = known.index(find_lesson(words["name"]).name) if "name" in words else 0
    folder = Path(words.get("folder", COPIES)).absolute()
    with find_broker() as servers, ExitStack() as stack:
        lab = Lab(servers, stack)
        learn(lab, [Exercise(Lesson(name), folder) for name in known[first:]])
    return 0


def read_engines(words: Mapping[str, str]) -> Sequence[Engine]:
    """Those to run. Raises Failure."""
    engine = words.get("on")
    chosen = [each for each in ENGINES if engine in (None, each)]
    if not chosen:
        raise Failure(f"there is no engine {engine}: the engines are {' and '.join(ENGINES)}")
    return chosen


def read_options(words: Mapping[str, str]) -> Mapping[str, int]:
    """The values of a lesson's parameters. Raises Failure."""
    given = {name: value for name, value in words.items() if name not in NOT_PARAMETERS}
    if wrong := [f"{name}={value}" for name, value in given.items() if not value.isdecimal()]:
        raise Failure(f"{wrong[0]}: a parameter of a lesson is a whole number")
    return {name: int(value) for name, value in given.items()}


def run(lesson: Lesson, engines: Sequence[Engine], options: Mapping[str, int]) -> int:
    """1 if a row is not as expected, else 0. With options, which change them, none is compared."""
    began_at = time.monotonic()
    results: dict[Engine, Result] = {}
    with find_broker() as servers, ExitStack() as stack:
        lab = Lab(servers, stack)
        for engine in engines:
            tell(f"{lesson.name}: {TITLES[engine]} answers")
            functions = get_functions(lesson, engine)
            results[engine] = Result(cases=answer(lab, engine, lesson, functions, options))
    tell(f"\n{lesson.title}")
    for number, case in enumerate(lesson.cases):
        tell("")
        print_case(case, [result.cases[number] for result in results.values()])
    tell("")
    return 0 if options or print_verdict(lesson.name, results, time.monotonic() - began_at) else 1


def run_all(engines: Sequence[Engine]) -> int:
    """1 if a row is not as expected, or a control is, else 0. Writes the grid."""
    found: dict[tuple[str, Engine], str] = {}
    is_right = True
    with find_broker() as servers, ExitStack() as stack:
        lab = Lab(servers, stack)
        for name in find_lessons():
            began_at = time.monotonic()
            results: dict[Engine, Result] = {}
            for engine in engines:
                tell(f"{name}: {TITLES[engine]} answers")
                results[engine] = answer_all(lab, engine, Lesson(name))
                found[name, engine] = str(results[engine])
            is_right &= print_verdict(name, results, time.monotonic() - began_at)
    if write_grid(found):
        tell("lessons/README.md has the new results")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
