"""A relay as a process of its own, for tests that kill it: NAME [FAULT_POINT]."""

import sys

from shared.outbox import relay_process
from shared.runtime import faults, processes
from shared.runtime.faults import FaultPoint
from shared.runtime.settings import Settings

if __name__ == "__main__":
    name, *points = sys.argv[1:]
    for point in points:
        faults.arm(FaultPoint(point))
    processes.run(relay_process.run_relay(name, processes.read_settings(Settings)))
