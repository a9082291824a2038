"""How fast orders become cells, how late a row is, and how much state that takes.

make bench-analytics
"""

import sys

from benchmarks import measuring
from benchmarks.analytics import event_to_row, rebuilding, state_growth, throughput
from benchmarks.analytics.job_sizes import FULL, QUICK, TINY

PARTS = (throughput.PART, event_to_row.PART, state_growth.PART, rebuilding.PART)

if __name__ == "__main__":
    sys.exit(measuring.main("analytics", __doc__, PARTS, full=FULL, quick=QUICK, tiny=TINY))
