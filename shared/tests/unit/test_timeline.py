"""What held when, in whatever order it is announced."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from shared.eventsourcing.timeline import Timeline

START = datetime(2016, 11, 11, tzinfo=UTC)

changes = st.lists(st.tuples(st.integers(0, 5), st.integers()), max_size=8)


def instant(hours: int) -> datetime:
    return START + timedelta(hours=hours)


def test_nothing_holds_before_the_first_change() -> None:
    never: Timeline[int] = Timeline()

    assert never.latest is None
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
    assert timeline.latest == timeline.at(instant(5))


def test_of_two_changes_in_a_millisecond_the_last_announced_one_holds() -> None:
    """As where orders are counted: the finer part of an instant decides nothing."""
    first, second = START + timedelta(microseconds=900), START + timedelta(microseconds=100)
    empty: Timeline[str] = Timeline()
    timeline = empty.changed(first, "SH").changed(second, "GZ")

    assert timeline.latest == timeline.at(second) == timeline.at(START) == "GZ"
