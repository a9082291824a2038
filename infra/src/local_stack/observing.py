"""`lag`: what the observer of a stack has measured."""

import subprocess
import sys

from local_stack.settings import Settings
from local_stack.status import as_found

OBSERVER = "observer"
LAG = ("python", "-m", "observer_svc", "lag")


def show_lag(settings: Settings) -> int:
    """Print the lags of consumers; the exit status.

    Raises:
        Failure: no stack has run here.
    """
    address = as_found(settings).address(OBSERVER)
    command = [sys.executable, *LAG[1:], "--address", address]
    return subprocess.run(command, check=False).returncode
