"""The state of a consumer is a function of its last samples."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observer_svc.lag import Sample, State, evaluate

FULL = 4


def samples(*pairs: tuple[int, int], is_alive: bool | None = True) -> list[Sample]:
    """Of positions and ends."""
    return [Sample(position=position, end=end, is_alive=is_alive) for position, end in pairs]


def test_one_that_has_reached_the_end_is_ok() -> None:
    assert evaluate(samples((1, 9), (2, 9), (9, 9), (9, 99)), FULL) is State.OK


def test_one_that_catches_up_is_ok_however_far_behind_it_is() -> None:
    assert evaluate(samples((1, 900), (50, 910), (99, 920), (150, 930)), FULL) is State.OK


def test_one_that_falls_further_behind_is_a_warning() -> None:
    assert evaluate(samples((1, 9), (2, 20), (3, 30), (4, 40)), FULL) is State.WARN


def test_one_that_is_there_and_reads_nothing_stalls() -> None:
    assert evaluate(samples((1, 9), (1, 9), (1, 9), (1, 9)), FULL) is State.STALL


@pytest.mark.parametrize("is_alive", [False, None])
def test_one_that_is_not_there_and_has_something_to_read_has_stopped(is_alive: bool | None) -> None:
    assert evaluate(samples(*[(1, 2)] * 4, is_alive=is_alive), FULL) is State.STOP


def test_one_that_is_not_there_and_has_nothing_to_read_is_ok() -> None:
    assert evaluate(samples(*[(2, 2)] * 4, is_alive=False), FULL) is State.OK


def test_nothing_is_decided_on_too_few_samples() -> None:
    assert evaluate(samples(*[(1, 9)] * 3, is_alive=False), FULL) is State.OK


def test_offsets_that_went_back_are_no_progress() -> None:
    assert evaluate(samples((5, 9), (4, 9), (3, 9), (2, 9)), FULL) is State.STALL


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=8), st.booleans())
def test_a_consumer_without_a_lag_is_never_blamed(
    pairs: list[tuple[int, int]], is_alive: bool
) -> None:
    seen = samples(*pairs, (7, 7), is_alive=is_alive)

    assert evaluate(seen, FULL) is State.OK
