"""`lag`: what the observer of a stack has measured."""

import subprocess
import sys
from collections.abc import Sequence

from fetching.environment import inherit
from fetching.errors import Failure
from local_stack.settings import Settings
from local_stack.status import as_found

OBSERVER = "observer"


def get_command(*, as_json: bool) -> Sequence[str]:
    """The arguments of Python that print it."""
    return ["-m", "observer_svc", "lag", *(["--json"] if as_json else [])]


def show_lag(settings: Settings, *, as_json: bool) -> int:
    """Print it; the exit status is 1 when something has stopped.

    Raises:
        Failure: no stack has run here.
    """
    stack = as_found(settings)
    if OBSERVER not in stack.ports:
        raise Failure("nothing runs here: `make up`, then again")
    command = [
        *(sys.executable, *get_command(as_json=as_json)),
        *("--address", stack.address(OBSERVER)),
    ]
    return subprocess.run(command, env=inherit(), check=False).returncode
