"""How fast orders become cells, how late a row is, and how much state that takes.

make bench-analytics
"""

import sys

import event_to_row
import measuring
import rebuilding
import state_growth
import throughput
from job_sizes import FULL, QUICK, TINY

PARTS = (throughput.PART, event_to_row.PART, state_growth.PART, rebuilding.PART)

if __name__ == "__main__":
    sys.exit(measuring.main("analytics", __doc__, PARTS, full=FULL, quick=QUICK, tiny=TINY))
