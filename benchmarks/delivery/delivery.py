"""How fast orders and events are taken, delivered and consumed, each figure beside its limit.

make bench
"""

import sys

from benchmarks import measuring
from benchmarks.delivery import (
    appending,
    confirming,
    consuming,
    delivery_times,
    draining,
    failing_over,
    folding,
    placing,
)
from benchmarks.sizes import FULL, QUICK, TINY

PARTS = (
    appending.PART,
    draining.PART,
    delivery_times.PART,
    failing_over.PART,
    consuming.PART,
    folding.PART,
    placing.PART,
    confirming.PART,
)

if __name__ == "__main__":
    sys.exit(measuring.main("delivery", __doc__, PARTS, full=FULL, quick=QUICK, tiny=TINY))
