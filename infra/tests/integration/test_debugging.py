"""A process that runs in this terminal is ended by Ctrl-C, and the stack runs it again."""

import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import psutil
import pytest

from local_stack import debugging
from local_stack.debugging import INTERRUPTS_MAX, debug, run_here
from local_stack.stack_spec import StackContext, StackSpec
from local_stack.status import status
from local_stack.testing import throwaway_stack


@pytest.fixture(scope="module")
def web(web_only: StackSpec) -> Iterator[StackContext]:
    """The tiny service alone; each test leaves it ready."""
    with throwaway_stack(web_only) as context:
        yield context


BREAKPOINTS = "PYTHONBREAKPOINT"


@dataclass
class Stubborn:
    """A process in which `breakpoint()` waits for its user; meanwhile this one gets a signal."""

    number: signal.Signals
    signals: int = 0
    is_killed: bool = False

    def start(self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> Self:
        assert BREAKPOINTS not in env
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *words: object) -> None:
        assert self.is_killed

    def kill(self) -> None:
        self.is_killed = True

    def wait(self) -> int:
        if not self.is_killed:
            self.signals += 1
            signal.raise_signal(self.number)
        return -signal.SIGKILL


def test_breakpoints_of_the_stack_wait_for_no_terminal(
    web_only: StackSpec, web: StackContext
) -> None:
    [found] = status(web_only, web.settings)

    assert psutil.Process(found.pid).environ()[BREAKPOINTS] == "0"


@pytest.mark.usefixtures("usual_signals")
def test_the_last_interrupt_kills_what_goes_on(
    web_only: StackSpec, web: StackContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    stubborn = Stubborn(signal.SIGINT)
    monkeypatch.setattr(debugging, "subprocess", SimpleNamespace(Popen=stubborn.start))

    assert run_here(web, web_only.processes[0]) == -signal.SIGKILL
    assert stubborn.signals == INTERRUPTS_MAX


@pytest.mark.usefixtures("usual_signals")
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_closed_terminal_ends_it_and_the_stack_runs_it_again(
    web_only: StackSpec, web: StackContext, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    stubborn = Stubborn(number)
    monkeypatch.setattr(debugging, "subprocess", SimpleNamespace(Popen=stubborn.start))

    with pytest.raises(SystemExit) as ended:
        debug(web_only, web.settings, "web")

    assert ended.value.code == 128 + number
    assert (stubborn.signals, stubborn.is_killed) == (1, True)
    [found] = status(web_only, web.settings)
    assert found.state == "ready"
