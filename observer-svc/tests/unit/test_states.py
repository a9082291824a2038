"""A state is a function of the last samples: it follows from how they move, and not from a size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observer_svc.states import (
    BEAT_SECONDS_MAX,
    FULL_SAMPLES,
    GONE_SAMPLES,
    Sample,
    State,
    find_worst,
    judge_consumer,
    judge_relay,
)
from shared.outbox.backlog import Backlog


def full(*pairs: tuple[int, int], is_alive: bool = True) -> list[Sample]:
    """Samples of positions and ends; the last pair is repeated until there are enough."""
    padded = [*pairs, *[pairs[-1]] * (FULL_SAMPLES - len(pairs))]
    return [Sample(position=position, end=end, is_alive=is_alive) for position, end in padded]


def test_one_that_has_reached_the_end_is_ok() -> None:
    assert judge_consumer(full((1, 9), (9, 9), (9, 99))) is State.OK


def test_one_that_catches_up_is_ok_however_far_behind_it_is() -> None:
    assert judge_consumer(full((1, 900), (50, 910), (99, 920), (150, 930))) is State.OK


def test_one_that_falls_further_behind_is_a_warning() -> None:
    assert judge_consumer(full((1, 9), (2, 20), (3, 30), (4, 40))) is State.WARN


def test_one_that_is_there_and_reads_nothing_stalls() -> None:
    assert judge_consumer(full((1, 9))) is State.STALL


def test_offsets_that_went_back_are_no_progress() -> None:
    assert judge_consumer(full((5, 9), (4, 9), (3, 9), (2, 9))) is State.STALL


@pytest.mark.parametrize("end", [1, 2])
def test_one_that_is_not_there_has_stopped_also_if_nothing_waits(end: int) -> None:
    gone = full((1, end), is_alive=False)[:GONE_SAMPLES]

    assert judge_consumer(gone) is State.STOP
    assert judge_consumer([*full((1, end)), *gone]) is State.STOP


def test_a_restart_is_no_stop() -> None:
    away = full((1, 2), is_alive=False)[: GONE_SAMPLES - 1]

    assert judge_consumer(away) is State.OK
    assert judge_consumer([*full((1, 1)), *away]) is State.OK
    assert judge_consumer([*away, *full((1, 1))[:1]]) is State.OK


def test_one_beyond_the_end_of_its_log_stalls_though_it_has_no_lag() -> None:
    beyond = full((9, 5))[:GONE_SAMPLES]

    assert judge_consumer(beyond) is State.STALL
    assert judge_consumer([*full((5, 5)), *beyond[:1]]) is State.OK, "a new leader may be behind"


def test_nothing_but_a_stop_is_decided_on_few_samples() -> None:
    assert judge_consumer(full((1, 9))[:-1]) is State.OK


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=FULL_SAMPLES))
def test_a_consumer_that_is_there_and_has_reached_the_end_is_never_blamed(
    pairs: list[tuple[int, int]],
) -> None:
    assert judge_consumer(full(*pairs, (7, 7))) is State.OK


def backlog(
    seconds: float = 0.0, *, is_held: bool = True, beat_seconds: float | None = 0.5
) -> Backlog:
    return Backlog(
        rows=int(seconds > 0), seconds=seconds, is_held=is_held, beat_seconds=beat_seconds
    )


def test_a_relay_that_publishes_is_ok_whatever_waits() -> None:
    assert judge_relay([backlog(900.0), backlog(700.0)] * FULL_SAMPLES) is State.OK


def test_rows_that_wait_longer_and_longer_are_a_warning() -> None:
    assert judge_relay([backlog(3.0 * number) for number in range(FULL_SAMPLES)]) is State.WARN
    assert judge_relay([backlog(3.0 * number) for number in range(FULL_SAMPLES - 1)]) is State.OK


def test_a_relay_whose_loop_hangs_does_not_look_like_a_quiet_one() -> None:
    quiet = backlog(beat_seconds=BEAT_SECONDS_MAX)
    hangs = backlog(beat_seconds=BEAT_SECONDS_MAX + 1)

    assert judge_relay([quiet]) is State.OK
    assert judge_relay([hangs]) is State.STALL


def test_a_sign_of_life_from_before_a_clock_was_put_back_is_none() -> None:
    assert judge_relay([backlog(beat_seconds=-3_600.0)]) is State.STALL
    assert judge_relay([backlog(beat_seconds=-1.0)]) is State.OK


def test_a_relay_that_has_just_begun_has_given_no_sign_of_life_yet() -> None:
    assert judge_relay([backlog(beat_seconds=None)]) is State.OK


def test_without_a_lease_no_relay_is_there() -> None:
    gone = backlog(is_held=False, beat_seconds=99.0)

    assert judge_relay([backlog(), gone]) is State.OK, "another one takes over"
    assert judge_relay([backlog(), *[gone] * GONE_SAMPLES]) is State.STOP


def test_the_worst_state_is_that_of_all() -> None:
    assert find_worst([]) is State.OK
    assert find_worst([State.WARN, State.STOP, State.STALL]) is State.STOP
