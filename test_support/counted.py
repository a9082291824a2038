"""What a counter counts during a test: its total is that of the whole process."""

from collections.abc import Iterator
from contextlib import contextmanager

from shared.runtime.metrics import Counter, Values


@contextmanager
def counting(counter: Counter) -> Iterator[dict[Values, float]]:
    """Yields what is counted inside the block, by the values of the attributes, after its end."""
    before, counted = counter.totals, dict[Values, float]()
    yield counted
    for values, total in counter.totals.items():
        if more := total - before.get(values, 0):
            counted[values] = more
