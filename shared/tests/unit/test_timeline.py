"""What held when, in whatever order it is announced."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.eventsourcing.timeline import CHUNK_CHANGES_MAX, Timeline

START = datetime(2016, 11, 11, tzinfo=UTC)

MANY = 5 * CHUNK_CHANGES_MAX
changes = st.lists(st.tuples(st.integers(0, 5), st.integers()), max_size=8)


def instant(hours: int) -> datetime:
    return START + timedelta(hours=hours)


def test_nothing_holds_before_the_first_change() -> None:
    never: Timeline[int] = Timeline()

    assert never.at(instant(5)) is None
    assert never.changed(instant(1), 7).at(instant(0)) is None


@given(changes, st.integers(0, 5))
def test_what_holds_is_the_newest_change_up_to_then_and_of_equals_the_last_announced(
    announced: list[tuple[int, int]], asked: int
) -> None:
    timeline: Timeline[int] = Timeline()
    for hours, value in announced:
        timeline = timeline.changed(instant(hours), value)

    until = [(hours, number) for number, (hours, _) in enumerate(announced) if hours <= asked]
    expected = announced[max(until)[1]][1] if until else None
    assert timeline.at(instant(asked)) == expected
    assert len(timeline) == len(announced)
    if announced:
        assert timeline.latest == timeline.at(instant(5))


def test_of_two_changes_in_a_millisecond_the_last_announced_one_holds() -> None:
    """As where orders are counted: the finer part of an instant decides nothing."""
    first, second = START + timedelta(microseconds=900), START + timedelta(microseconds=100)
    empty: Timeline[str] = Timeline()
    timeline = empty.changed(first, "SH").changed(second, "GZ")

    assert timeline.latest == timeline.at(second) == timeline.at(START) == "GZ"


SHUFFLED = random.Random(7).sample(range(MANY), MANY)


@pytest.mark.parametrize(
    "announced",
    [range(MANY), range(MANY - 1, -1, -1), SHUFFLED, [3] * MANY],
    ids=["oldest first", "newest first", "in any order", "at one instant"],
)
def test_a_change_among_very_many_copies_few_of_them(announced: Sequence[int]) -> None:
    """Whatever their order, or the fold of a stream would grow with the square of its events."""
    timeline: Timeline[int] = Timeline()
    for number, hours in enumerate(announced):
        before, timeline = timeline, timeline.changed(instant(hours), number)
        new = [each for each in timeline.chunks if not any(each is old for old in before.chunks)]
        assert len(new) <= 2
        assert sum(map(len, new)) <= CHUNK_CHANGES_MAX + 1

    assert len(timeline) == MANY
    assert all(0 < len(chunk) <= CHUNK_CHANGES_MAX for chunk in timeline.chunks)
    assert len(timeline.chunks) <= 2 * MANY // CHUNK_CHANGES_MAX
    last_at = {hours: number for number, hours in enumerate(announced)}
    assert {hours: timeline.at(instant(hours)) for hours in last_at} == last_at
    assert timeline.latest == last_at[max(last_at)]
