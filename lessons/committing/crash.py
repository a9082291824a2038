"""Where a reader is killed, and what may become of the numbers that it reads."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from fetching.errors import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """A reader of the numbers from 1 to `numbers`, in batches of `every`, is killed after the
    effect of one of them. Raises Failure if there is no such number."""

    numbers: int
    every: int
    dies_after: int

    def __post_init__(self) -> None:
        if self.every < 1:
            raise Failure(f"every={self.every}: a batch has at least one number")
        if not 1 <= self.dies_after <= self.numbers:
            raise Failure(
                f"dies_after={self.dies_after}: write a number from 1 to numbers={self.numbers}"
            )

    @property
    def batches(self) -> int:
        return math.ceil(self.numbers / self.every)

    @property
    def begin(self) -> int:
        """The last number of the batch before the one in which it is killed; 0 without one."""
        return (self.dies_after - 1) // self.every * self.every

    @property
    def end(self) -> int:
        """The last number of the batch in which it is killed."""
        return min(self.begin + self.every, self.numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fates:
    """How many numbers had no effect, and how many had more than one."""

    lost: int = 0
    twice: int = 0

    def __str__(self) -> str:
        return f"{self.lost} lost and {self.twice} twice"


def count_fates(effects: Iterable[int], numbers: int) -> Fates:
    """Count which of the numbers from 1 up had no effect, and which had several."""
    counted = Counter(effects)
    return Fates(
        lost=sum(number not in counted for number in range(1, numbers + 1)),
        twice=sum(count > 1 for count in counted.values()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """How many numbers may be lost, and how many may have an effect twice."""

    name: str
    lost_max: float = 0
    twice_max: float = 0

    def allows(self, fates: Fates) -> bool:
        return fates.lost <= self.lost_max and fates.twice <= self.twice_max


AT_MOST_ONCE = Level(name="at most once", lost_max=math.inf)
AT_LEAST_ONCE = Level(name="at least once", twice_max=math.inf)
EXACTLY_ONCE = Level(name="exactly once")
