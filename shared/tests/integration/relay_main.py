"""A relay as a process of its own, for tests that kill it: NAME [FAULT_POINT]."""

import sys

from shared import faults, processes, relay_process
from shared.faults import FaultPoint
from shared.settings import Settings

if __name__ == "__main__":
    name, *points = sys.argv[1:]
    for point in points:
        faults.arm(FaultPoint(point))
    processes.run(relay_process.run_relay(name, processes.read_settings(Settings)))
