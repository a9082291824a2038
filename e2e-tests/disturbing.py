"""Processes of a running stack, stopped for a while or killed."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from embedded import supervision
from eventually import eventually
from stack import Stack


@contextmanager
def stopped(stack: Stack, *names: str) -> Iterator[None]:
    """The processes are down inside."""
    folder = stack.folder

    def states() -> set[str]:
        programs = supervision.programs(folder) or {}
        return {programs[name].state for name in names}

    for name in names:
        supervision.stop(folder, name)
    eventually(states, lambda seen: seen <= {"STOPPED", "EXITED"}, what=f"{names} stopped")
    try:
        yield
    finally:
        for name in names:
            supervision.start(folder, name)


def kill(stack: Stack, name: str) -> None:
    """kill -9; the supervisor starts it again."""
    programs = supervision.programs(stack.folder) or {}
    if programs[name].pid:
        with suppress(psutil.NoSuchProcess):  # it has just ended by itself
            psutil.Process(programs[name].pid).kill()
