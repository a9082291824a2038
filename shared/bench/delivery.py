"""How fast orders and events are taken, delivered and consumed, each figure beside its limit.

make bench
"""

import sys

import appending
import confirming
import consuming
import delivery_times
import draining
import failing_over
import folding
import measuring
import placing
from sizes import FULL, QUICK, TINY

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
