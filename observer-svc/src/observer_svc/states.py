"""What the last measurements of a consumer in a partition, or of a relay, mean.

The states are those of Burrow
(https://github.com/linkedin/Burrow/wiki/Consumer-Lag-Evaluation-Rules): a lag alone means little,
as a large one that shrinks is no problem, and a small one that stays is. Other than there, one that
is not there has stopped also while nothing waits for it: all that is declared has to run.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from shared.outbox.backlog import Backlog

GONE_SAMPLES = 2
"""Measurements that show something not there before it has stopped: a restart of a worker or a
relay takes less. That of the job can take longer."""
FULL_SAMPLES = 10
"""Measurements that all other states are decided on: the last half minute, at the usual three
seconds."""
BEAT_SECONDS_MAX = 10.0
"""How old the sign of life of a loop can be: the job gives one each five seconds, a relay each
second."""


class State(StrEnum):
    """From best to worst."""

    OK = "OK"
    WARN = "WARN"
    """It works, and falls further behind."""
    STALL = "STALL"
    """It is there, and does nothing of what waits for it."""
    STOP = "STOP"
    """It is not there."""

    @property
    def rank(self) -> int:
        """The worse, the higher."""
        return list(State).index(self)


def find_worst(states: Iterable[State]) -> State:
    """OK of none."""
    return max(states, key=lambda state: state.rank, default=State.OK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A consumer's position in a partition at one moment, and the end of the log."""

    position: int
    end: int
    is_alive: bool

    @property
    def lag(self) -> int:
        """Records that are not consumed yet."""
        return max(0, self.end - self.position)


def judge_consumer(samples: Sequence[Sample]) -> State:
    """The state of a consumer in a partition, from its last samples, oldest first.

    One that has reached the end once is OK, and so is each before there are FULL_SAMPLES: it takes
    a while to read what was just written. One beyond the end stalls: its records were lost, or the
    topic is another one.
    """
    if lasts(not each.is_alive for each in samples):
        return State.STOP
    if lasts(each.position > each.end for each in samples):
        return State.STALL
    if len(samples) < FULL_SAMPLES or any(each.lag == 0 for each in samples):
        return State.OK
    first, last = samples[0], samples[-1]
    if last.position <= first.position:
        return State.STALL
    return State.WARN if grows([each.lag for each in samples]) else State.OK


def judge_relay(samples: Sequence[Backlog]) -> State:
    """The state of the relays of a service, from its last samples, oldest first.

    One whose loop does not come round stalls, also if it renews its lease and nothing waits: it
    would look like a quiet one. It falls behind while the oldest row waits longer and longer.
    """
    if lasts(not each.is_held for each in samples):
        return State.STOP
    last = samples[-1]
    if last.is_held and last.beat_seconds is not None and not is_recent(last.beat_seconds):
        return State.STALL
    is_full = len(samples) >= FULL_SAMPLES
    return State.WARN if is_full and grows([each.seconds for each in samples]) else State.OK


def is_recent(beat_seconds: float) -> bool:
    """Whether a sign of life is recent. One from the future is older than a clock's last change."""
    return abs(beat_seconds) <= BEAT_SECONDS_MAX


def lasts(seen: Iterable[bool]) -> bool:
    """Whether something was seen in each of the last GONE_SAMPLES measurements."""
    last = list(seen)[-GONE_SAMPLES:]
    return len(last) == GONE_SAMPLES and all(last)


def grows(numbers: Sequence[float]) -> bool:
    """Whether none is smaller than the one before it, and the last is larger than the first."""
    is_steady = all(before <= after for before, after in itertools.pairwise(numbers))
    return is_steady and numbers[-1] > numbers[0]
