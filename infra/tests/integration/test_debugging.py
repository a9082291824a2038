"""A process that runs in this terminal is ended by Ctrl-C, and the stack runs it again."""

import signal
from collections.abc import Iterator
from types import SimpleNamespace

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


class Stubborn:
    """A process in which `breakpoint()` waits for its user: Ctrl-C does not end it."""

    def __init__(self, *words: object, **options: object) -> None:
        self.interrupts = 0
        self.is_killed = False

    def __enter__(self) -> "Stubborn":
        return self

    def __exit__(self, *words: object) -> None:
        assert self.is_killed

    def kill(self) -> None:
        self.is_killed = True

    def wait(self) -> int:
        if self.is_killed:
            return -signal.SIGKILL
        self.interrupts += 1
        assert self.interrupts <= INTERRUPTS_MAX
        raise KeyboardInterrupt


def test_the_last_interrupt_kills_what_goes_on(
    web_only: StackSpec, web: StackContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debugging, "subprocess", SimpleNamespace(Popen=Stubborn))

    assert run_here(web, web_only.processes[0]) == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_closed_terminal_ends_it_and_the_stack_runs_it_again(
    web_only: StackSpec, web: StackContext, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    started: list[str] = []

    def close(text: str, tone: object) -> None:
        started.append(text)
        signal.raise_signal(number)

    monkeypatch.setattr(debugging, "tell", close)
    with pytest.raises(SystemExit) as ended:
        debug(web_only, web.settings, "web")

    assert ended.value.code == 128 + number
    assert len(started) == 1
    [found] = status(web_only, web.settings)
    assert found.state == "ready"
