"""How far a consumer is behind in one partition, and what its last samples mean.

The states are those of Burrow
(https://github.com/linkedin/Burrow/wiki/Consumer-Lag-Evaluation-Rules): a lag alone means little,
as a large one that shrinks is no problem, and a small one that stays is.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class State(IntEnum):
    """The worse, the higher."""

    OK = 0
    WARN = 1
    """It reads, and falls further behind."""
    STALL = 2
    """It is there, and does not read what waits for it."""
    STOP = 3
    """It is not there, and something waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A consumer's position in a partition at one moment, and the end of the log.

    `is_alive` is None where only the position itself can show it.
    """

    position: int
    end: int
    is_alive: bool | None

    @property
    def lag(self) -> int:
        """Records that are not consumed yet."""
        return max(0, self.end - self.position)


def evaluate(samples: Sequence[Sample], full: int) -> State:
    """The state of a consumer in a partition after its last samples, oldest first.

    One that has reached the end once is OK, and so is every one before there are `full` samples:
    it takes a while to read what was just written.
    """
    if len(samples) < full or any(each.lag == 0 for each in samples):
        return State.OK
    first, last = samples[0], samples[-1]
    if last.position <= first.position:
        return State.STOP if not last.is_alive else State.STALL
    lags = [each.lag for each in samples]
    grows = all(before <= after for before, after in itertools.pairwise(lags))
    return State.WARN if grows and lags[-1] > lags[0] else State.OK
