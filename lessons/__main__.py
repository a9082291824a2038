"""Lessons in streams: each a question, its records, and what Spark and Faust answer.

make lesson                              the list
make lesson name=windows                 both engines next to what must come out
make lesson name=windows on=spark        one of them
make lesson name=windows grace=0         with another value of a parameter, without a comparison
make lessons [on=spark]                  all of them, a line for each
"""

import argparse
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from fetching.errors import Failure
from lessons.broker import find_broker
from lessons.lab import Lab
from lessons.lesson import ENGINES, Engine, Lesson, find_lessons, read_title
from lessons.report import TITLES, print_case, print_verdict
from lessons.running import Outcome, answer, get_functions, get_parameters
from local_stack.progress import complain, tell

NOT_PARAMETERS = ("name", "on")
"""Words of the command line that are no parameters of a lesson."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make lesson",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--all", action="store_true", help="run all lessons, without their tables")
    parser.add_argument(
        "words", nargs="*", metavar="name=...", help="name=LESSON, on=spark, PARAMETER=NUMBER"
    )
    arguments = parser.parse_args()
    # A new broker has no coordinator of groups at first, and topics of a lesson do not stay.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        words = read_words(arguments.words)
        if not arguments.all and not words:
            print_list()
            return 0
        lessons = choose_lessons(words, is_all=arguments.all)
        return run(lessons, read_engines(words), read_options(words), is_short=arguments.all)
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


def choose_lessons(words: Mapping[str, str], *, is_all: bool) -> Sequence[Lesson]:
    """The lessons to run, whose functions take the parameters. Raises Failure."""
    known = find_lessons()
    if is_all:
        return [Lesson(name) for name in known]
    name = words.get("name", "")
    if name not in known:
        missing = f"there is no lesson {name}" if name else "name=... is missing"
        raise Failure(f"{missing}: the lessons are {', '.join(known)}")
    lesson = Lesson(name)
    taken = get_parameters(lesson)
    if wrong := sorted(words.keys() - {*NOT_PARAMETERS} - taken):
        takes = ", ".join(sorted(taken)) or "none"
        raise Failure(f"{name} has no parameter {wrong[0]}; its parameters: {takes}")
    return [lesson]


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


def run(
    lessons: Sequence[Lesson],
    engines: Sequence[Engine],
    options: Mapping[str, int],
    *,
    is_short: bool,
) -> int:
    """1 if a row is not as expected, else 0."""
    with find_broker() as servers, ExitStack() as stack:
        lab = Lab(servers, stack)
        found = [run_lesson(each, lab, engines, options, is_short=is_short) for each in lessons]
    return 0 if all(found) else 1


def run_lesson(
    lesson: Lesson,
    lab: Lab,
    engines: Sequence[Engine],
    options: Mapping[str, int],
    *,
    is_short: bool,
) -> bool:
    """Whether all rows are as expected. With options, which change them, none is compared."""
    began_at = time.monotonic()
    outcomes: list[Outcome] = []
    for engine in engines:
        tell(f"{lesson.name}: {TITLES[engine]} answers")
        outcomes += answer(lab, engine, lesson.name, get_functions(lesson), options)
    if not is_short:
        tell(f"\n{lesson.title}")
        for case in lesson.cases:
            print_case(case, [each for each in outcomes if each.case is case])
        tell("")
    if options:
        return True
    print_verdict(lesson.name, outcomes, time.monotonic() - began_at)
    return not any(outcome.differences for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(main())
