"""Lessons in streams: each a question, its records, and what Spark and Faust answer.

make lesson                              the list
make lesson name=windows                 both engines next to what must come out
make lesson name=windows on=spark        one of them
make lesson name=windows grace=0         with another value of a parameter, without a comparison
make lessons                             all of them
"""

import argparse
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from analytics_spark.job.gateway import JavaEnded
from fetching.errors import Failure
from lessons.broker import find_broker
from lessons.experiment import Experiment, Lab, find_experiments
from lessons.lesson import ENGINES, Engine, Lesson, find_lessons, read_title
from lessons.report import print_case, print_findings, print_verdict
from lessons.running import Outcome, answer, get_functions, get_parameters
from local_stack.progress import tell
from local_stack.settings import Settings

IGNORED = ("name", "on", "in")
"""Words of a command line of make that are no parameters of a lesson."""


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
        if not arguments.all and "name" not in words:
            return print_list()
        every = sorted({*find_lessons(), *find_experiments()})
        names = every if arguments.all else [words["name"]]
        return run(names, words, is_short=arguments.all)
    except Failure as failure:
        sys.exit(f"hometown: {failure}")
    except JavaEnded as ended:
        sys.exit(f"hometown: {ended}: see {Settings().run_dir / 'lessons.log'}")


def read_words(words: Sequence[str]) -> Mapping[str, str]:
    """`name=windows` as a name and a value. Raises Failure."""
    pairs = [word.partition("=") for word in words]
    if wrong := [name for name, equals, _ in pairs if not equals]:
        raise Failure(f"{wrong[0]}: write it as name=value, such as name=windows")
    return {name: value for name, _, value in pairs}


def print_list() -> int:
    names = sorted({*find_lessons(), *find_experiments()})
    width = max(map(len, names))
    for name in names:
        tell(f"{name:{width}}  {read_title(name)}")
    tell("\nmake lesson name=... runs one of them, make lessons all")
    return 0


def run(names: Sequence[str], words: Mapping[str, str], *, is_short: bool) -> int:
    """1 if anything is found that is not as expected."""
    engines, options = read_engines(words), read_options(words)
    lessons = [lesson for name in names for lesson in choose(name, options)]
    failed = False
    with find_broker() as servers, ExitStack() as stack:
        lab = Lab(servers, stack)
        for lesson in lessons:
            if isinstance(lesson, Lesson):
                failed |= run_lesson(lesson, lab, engines, options, is_short=is_short)
            else:
                failed |= run_experiment(lesson, lab, options)
    return 1 if failed else 0


def choose(name: str, options: Mapping[str, int]) -> list[Lesson | Experiment]:
    """The lesson of this name; one can have cases and an experiment. Those that take the options.

    Raises:
        Failure: there is none.
    """
    lesson = [Lesson(name)] if name in find_lessons() else []
    experiment = [Experiment(name)] if name in find_experiments() else []
    if not lesson and not experiment:
        raise Failure(f"there is no lesson {name}: see make lesson")
    known: dict[Lesson | Experiment, set[str]] = {
        **{each: get_parameters(each) for each in lesson},
        **{each: each.parameters for each in experiment},
    }
    chosen = [each for each, parameters in known.items() if options.keys() <= parameters]
    if not chosen:
        takes = ", ".join(sorted(set().union(*known.values()))) or "none"
        raise Failure(f"the parameters of {name}: {takes}")
    return chosen


def run_experiment(experiment: Experiment, lab: Lab, options: Mapping[str, int]) -> bool:
    """Whether a claim does not hold."""
    began_at = time.monotonic()
    tell(experiment.title)
    findings = experiment.run(lab, **options)
    print_findings(experiment.name, findings, time.monotonic() - began_at)
    return not all(finding.holds for finding in findings)


def run_lesson(
    lesson: Lesson,
    lab: Lab,
    engines: Sequence[Engine],
    options: Mapping[str, int],
    *,
    is_short: bool,
) -> bool:
    """Whether anything differs. With options nothing is compared: they change what is right."""
    began_at = time.monotonic()
    outcomes: list[Outcome] = []
    for engine in engines:
        outcomes += answer(lab, engine, lesson.name, get_functions(lesson), options)
    if not is_short:
        tell(lesson.title)
        for case in lesson.cases:
            print_case(case, [each for each in outcomes if each.case is case])
        tell("")
    if options:
        return False
    print_verdict(lesson.name, outcomes, time.monotonic() - began_at)
    return any(outcome.differences for outcome in outcomes)


def read_engines(words: Mapping[str, str]) -> Sequence[Engine]:
    engine = words.get("on")
    chosen = [each for each in ENGINES if engine in (None, each)]
    if not chosen:
        raise Failure(f"on={engine}: the engines are {' and '.join(ENGINES)}")
    return chosen


def read_options(words: Mapping[str, str]) -> Mapping[str, int]:
    """The parameters of a lesson. Raises Failure."""
    given = {name: value for name, value in words.items() if name not in IGNORED}
    try:
        return {name: int(value) for name, value in given.items()}
    except ValueError as error:
        raise Failure(f"a parameter of a lesson is a whole number: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
