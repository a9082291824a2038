"""Lessons in streams: each a question, its records, and what engines answer.

make lesson                              the list
make lesson name=windows                 Spark and Faust next to what must come out
make lesson name=windows on=spark        one of them
make lesson name=windows on=streams      Kafka Streams; it needs a Java compiler
make lesson name=windows case=hopping    one of its cases
make lesson name=question on=experiment  what it costs, in each of them
make lesson name=windows grace=0         with another value of a parameter, without a comparison
make lessons [on=streams]                all of them with their controls, a line for each
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
from lessons.experiment import Experiment, Findings
from lessons.grid import write_grid
from lessons.lab import Lab
from lessons.learning import learn
from lessons.lesson import (
    BY_DEFAULT,
    COLUMNS,
    ENGINES,
    Column,
    Engine,
    Lesson,
    find_lessons,
    read_title,
)
from lessons.report import TITLES, print_case, print_findings, print_verdict
from lessons.running import (
    Result,
    answer_in_each,
    get_columns,
    get_functions,
    get_parameters,
    run_with_controls,
)
from local_stack.progress import complain, tell

NOT_PARAMETERS = ("name", "on", "case")
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
        help="name=LESSON, on=spark, case=CASE, PARAMETER=NUMBER, folder=FOLDER (of exercises)",
    )
    arguments = parser.parse_args()
    # A new broker has no coordinator of groups at first, and topics of a lesson do not stay.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        words = read_words(arguments.words)
        if arguments.learn:
            return run_exercises(words)
        if arguments.all:
            return run_all(read_columns(words))
        if not words:
            print_list()
            return 0
        return run(*choose(words))
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


def choose(words: Mapping[str, str]) -> tuple[Lesson, Sequence[Column], Mapping[str, int]]:
    """A lesson, those of its columns to run, and the options for them. Raises Failure."""
    lesson, options = choose_lesson(words), read_options(words)
    return lesson, choose_columns(lesson, read_columns(words), options), options


def choose_lesson(words: Mapping[str, str]) -> Lesson:
    """The lesson of a name, with one case if that is named. Raises Failure."""
    name, known = words.get("name", ""), find_lessons()
    if name not in known:
        missing = f"there is no lesson {name}" if name else "name=... is missing"
        raise Failure(f"{missing}: the lessons are {', '.join(known)}")
    lesson = Lesson(name)
    if "case" in words:
        case, cases = words["case"], {each.name: each for each in lesson.cases}
        if case not in cases:
            raise Failure(f"{name} has no case={case}; its cases: {', '.join(cases) or 'none'}")
        lesson.cases = [cases[case]]
    return lesson


def run_exercises(words: Mapping[str, str]) -> int:
    """Those of all lessons, from one that is named. Raises Failure."""
    if wrong := sorted(words.keys() - {"name", "folder"}):
        raise Failure(f"exercises have no parameter {wrong[0]}: write name=... or folder=...")
    known = find_lessons()
    first = known.index(choose_lesson(words).name) if "name" in words else 0
    folder = Path(words.get("folder", COPIES)).absolute()
    with find_broker() as servers, ExitStack() as stack:
        lab = Lab(servers, stack)
        learn(lab, [Exercise(Lesson(name), folder) for name in known[first:]])
    return 0


def read_columns(words: Mapping[str, str]) -> Sequence[Column]:
    """Those of the grid to run; a case runs in engines only. Raises Failure."""
    on, known = words.get("on"), ENGINES if "case" in words else COLUMNS
    chosen = [each for each in known if (each == on if on else each in BY_DEFAULT)]
    if not chosen:
        what = "a case has" if "case" in words else "there is"
        default = ", ".join(each for each in known if each in BY_DEFAULT)
        raise Failure(f"{what} no {on}: write on={', on='.join(known)}, or nothing for {default}")
    return chosen


def read_options(words: Mapping[str, str]) -> Mapping[str, int]:
    """The values of a lesson's parameters. Raises Failure."""
    given = {name: value for name, value in words.items() if name not in NOT_PARAMETERS}
    if wrong := [f"{name}={value}" for name, value in given.items() if not value.isdecimal()]:
        raise Failure(f"{wrong[0]}: a parameter of a lesson is a whole number")
    return {name: int(value) for name, value in given.items()}


def choose_columns(
    lesson: Lesson, columns: Sequence[Column], options: Mapping[str, int]
) -> Sequence[Column]:
    """Those of a lesson that take every option. Raises Failure if there is none."""
    taken = {
        column: get_parameters(lesson, column)
        for column in get_columns(lesson)
        if column in columns
    }
    if not taken:
        of_case = f" for case={lesson.cases[0].name}" if len(lesson.cases) == 1 else ""
        raise Failure(f"{lesson.name} has no {' and no '.join(columns)}{of_case}")
    chosen = [column for column in taken if options.keys() <= taken[column]]
    if not chosen:
        known = ", ".join(
            f"on={column} takes {' and '.join(sorted(names)) or 'nothing'}"
            for column, names in taken.items()
        )
        raise Failure(f"{lesson.name}: nothing takes {' and '.join(sorted(options))}; {known}")
    return chosen


def run(lesson: Lesson, columns: Sequence[Column], options: Mapping[str, int]) -> int:
    """1 if anything is not as expected, else 0. With options, which change them, no rows are
    compared; what an experiment claims holds with any."""
    began_at = time.monotonic()
    results: dict[Column, Result | Findings] = {}
    engines = [engine for engine in ENGINES if engine in columns]
    with find_broker() as servers, ExitStack() as stack:
        lab = Lab(servers, stack)
        if engines:
            cases = run_cases(lab, lesson, engines, options)
            results |= {} if options else cases
        if "experiment" in columns:
            results["experiment"] = run_experiment(lab, lesson, options)
    tell("")
    seconds = time.monotonic() - began_at
    return 0 if not results or print_verdict(lesson.name, results, seconds) else 1


def run_cases(
    lab: Lab, lesson: Lesson, engines: Sequence[Engine], options: Mapping[str, int]
) -> Mapping[Column, Result]:
    """Prints a table of each case."""
    tell(f"{lesson.name}: answers of {' and '.join(TITLES[each] for each in engines)}")
    functions = {engine: get_functions(lesson, engine) for engine in engines}
    answers = answer_in_each(lab, lesson, functions, options)
    results: Mapping[Column, Result] = {
        engine: Result(cases=outcomes) for engine, outcomes in answers.items()
    }
    tell(f"\n{lesson.title}")
    for case in lesson.cases:
        outcomes = [
            each for of_engine in answers.values() for each in of_engine if each.case is case
        ]
        if outcomes:
            tell("")
            print_case(case, outcomes)
    return results


def run_experiment(lab: Lab, lesson: Lesson, options: Mapping[str, int]) -> Findings:
    """Prints a table of what was found. Raises Failure if an option has no such value."""
    tell("")
    findings = Experiment(lesson).run(lab, options)
    tell("")
    print_findings(findings.claims)
    return findings


def run_all(columns: Sequence[Column]) -> int:
    """1 if a row is not as expected, or a control is, else 0. Writes the grid."""
    found: dict[tuple[str, Column], str] = {}
    is_right = True
    with find_broker() as servers, ExitStack() as stack:
        lab = Lab(servers, stack)
        for name in find_lessons():
            began_at = time.monotonic()
            of_lesson = [each for each in get_columns(Lesson(name)) if each in columns]
            if not of_lesson:
                continue
            tell(f"{name}: {', '.join(TITLES[each] for each in of_lesson)}")
            results = run_with_controls(lab, Lesson(name), of_lesson)
            found |= {(name, column): str(result) for column, result in results.items()}
            is_right &= print_verdict(name, results, time.monotonic() - began_at)
    if write_grid(found):
        tell("lessons/README.md has the new results")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
