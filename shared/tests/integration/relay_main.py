"""A relay as a process of its own, for tests that kill it: NAME [FAULT_POINT]."""

import sys

from shared.outbox import relay_process
from shared.runtime import failpoints, processes
from shared.runtime.failpoints import Failpoint
from shared.runtime.settings import Settings

if __name__ == "__main__":
    name, *points = sys.argv[1:]
    for point in points:
        failpoints.arm(Failpoint(point))
    processes.run(relay_process.run_relay(name, processes.read_settings(Settings)))
