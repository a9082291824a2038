"""Relays of counters, each a process of its own that a test can kill."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from local_stack import ports
from shared.runtime.failpoints import Failpoint

MAIN = Path(__file__).parents[2] / "shared" / "tests" / "integration" / "relay_main.py"

StartRelay = Callable[..., "subprocess.Popen[bytes]"]
"""Optionally with a fault point, at which that relay dies."""
StartRelayAt = Callable[..., "subprocess.Popen[bytes]"]


@contextmanager
def relays(database: str, complaints: Path) -> Iterator[StartRelayAt]:
    """Starts a relay on a broker; what it complains about is added to `complaints`."""
    started: list[subprocess.Popen[bytes]] = []

    def start(bootstrap_servers: str, *points: Failpoint) -> "subprocess.Popen[bytes]":
        environment = os.environ | {
            "DATABASE_URL": database,
            "KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
            "HTTP_PORT": str(ports.find_free()),
        }
        with complaints.open("ab") as file:
            process = subprocess.Popen(
                [sys.executable, MAIN, "test-relay", *points], env=environment, stderr=file
            )
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.wait()
