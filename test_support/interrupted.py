"""A command that runs until Ctrl-C."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

from test_support.waits import HANGS_AFTER_SECONDS

IN_FOREGROUND = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""A shell without a terminal lets what it starts in the background ignore Ctrl-C."""


@dataclass(slots=True)
class Printed:
    """What it prints: `lines` while it runs, and the `rest` when it has ended."""

    lines: Iterator[str]
    rest: str = ""


@contextmanager
def interrupted(
    command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> Iterator[Printed]:
    """Run a command, and send it and its children what Ctrl-C sends at the end.

    It is killed after HANGS_AFTER_SECONDS: its lines end then, and what waits for one fails.
    """
    with subprocess.Popen(
        [sys.executable, "-c", IN_FOREGROUND, *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout
        printed = Printed(iter(process.stdout))
        limit = Timer(HANGS_AFTER_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        limit.start()
        try:
            yield printed
        finally:
            os.killpg(process.pid, signal.SIGINT)
            printed.rest = "".join(printed.lines)
            process.wait()
            limit.cancel()
