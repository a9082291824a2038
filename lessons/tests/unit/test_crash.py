"""What the ways of *committing* claim follows from where a reader is killed."""

import re
from contextlib import ExitStack

import pytest

from fetching.errors import Failure
from lessons.committing.crash import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    EXACTLY_ONCE,
    Crash,
    Fates,
    Level,
    count_fates,
)
from lessons.committing.experiment import CONTROLS, TRIALS, Trial, find_difference
from lessons.committing.killing import kill_sender
from lessons.experiment import Experiment
from lessons.lab import Lab
from lessons.lesson import FOLDER, Lesson

README = FOLDER / "committing" / "README.md"
CRASH = Crash(numbers=1_000, every=100, dies_after=250)
CRASHES = [
    Crash(numbers=1_000, every=every, dies_after=dies_after)
    for every in (1, 7, 100, 2_000)
    for dies_after in (1, 29, 30, 31, 100, 250, 1_000)
]


@pytest.mark.parametrize(
    ("dies_after", "begin", "end"), [(1, 0, 100), (100, 0, 100), (101, 100, 200), (950, 900, 999)]
)
def test_a_batch_has_its_first_and_its_last_number(dies_after: int, begin: int, end: int) -> None:
    crash = Crash(numbers=999, every=100, dies_after=dies_after)

    assert (crash.begin, crash.end) == (begin, end)
    assert crash.batches == 10


@pytest.mark.parametrize(
    "options", [{"every": 0}, {"dies_after": 0}, {"dies_after": 5_001}, {"numbers": 0}]
)
def test_a_crash_that_cannot_be_is_refused_before_anything_is_started(
    options: dict[str, int],
) -> None:
    ((name, number),) = options.items()

    with ExitStack() as stack, pytest.raises(Failure, match=f"{name}={number}"):
        Experiment(Lesson("committing")).run(Lab("", stack), options)


def test_numbers_without_an_effect_are_lost_and_those_with_several_are_twice() -> None:
    assert count_fates([1, 2, 2, 4, 4, 4], 5) == Fates(lost=2, twice=2)
    assert count_fates([1, 2, 3], 3) == Fates()


@pytest.mark.parametrize("crash", CRASHES, ids=str)
def test_a_way_claims_nothing_that_its_level_forbids(crash: Crash) -> None:
    for trial in TRIALS:
        if trial.leads_to:
            fates = trial.leads_to(crash)
            assert trial.level.allows(fates)
            assert min(fates.lost, fates.twice) >= 0


@pytest.mark.parametrize(
    ("level", "fates", "allows"),
    [
        (AT_MOST_ONCE, Fates(lost=1), True),
        (AT_MOST_ONCE, Fates(twice=1), False),
        (AT_LEAST_ONCE, Fates(twice=1), True),
        (AT_LEAST_ONCE, Fates(lost=1), False),
        (EXACTLY_ONCE, Fates(), True),
        (EXACTLY_ONCE, Fates(lost=1), False),
        (EXACTLY_ONCE, Fates(twice=1), False),
    ],
    ids=str,
)
def test_a_level_forbids_what_it_is_named_for(level: Level, fates: Fates, allows: bool) -> None:
    assert level.allows(fates) == allows
    assert (
        find_difference(Trial(name="a way", level=level, kill=kill_sender), CRASH, fates) == ""
    ) == allows


def test_other_figures_than_those_claimed_differ() -> None:
    trial = Trial(
        name="a way", level=AT_LEAST_ONCE, leads_to=lambda _: Fates(twice=50), kill=kill_sender
    )

    assert find_difference(trial, CRASH, Fates(twice=50)) == ""
    assert find_difference(trial, CRASH, Fates()) == (
        "0 lost and 0 twice, instead of 0 lost and 50 twice"
    )


def test_the_page_has_each_way_with_its_level() -> None:
    rows = re.findall(r"^\| ([^|]+?) \| .+ \| ([^|]+?) \|$", README.read_text(), re.MULTILINE)

    assert rows[0] == ("way", "level")
    assert rows[2:] == [(trial.name, trial.level.name) for trial in TRIALS]


def test_each_control_claims_what_its_way_does_not() -> None:
    claimed = {trial.name: trial.level for trial in TRIALS}

    assert all(claimed.get(control.name) != control.level for control in CONTROLS)
