"""A relay as a process of its own, for tests that kill it."""

import sys

from shared import processes, relay_process
from shared.settings import Settings

if __name__ == "__main__":
    processes.run(relay_process.run_relay(sys.argv[1], processes.read_settings(Settings)))
