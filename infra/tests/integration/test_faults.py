"""A process that is killed or stopped on purpose: how, for how long, and that it is back."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fetching.errors import Failure
from local_stack import faults, supervision
from local_stack.faults import STOPPED_SECONDS_MAX, kill, stop
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.signals import LEFT_ON
from local_stack.stack_spec import StackContext, StackSpec
from local_stack.status import status
from local_stack.testing import throwaway_stack
from local_stack.tools import find_running
from local_stack.up import runs

STOPPED_SECONDS = 1.0


@pytest.fixture(scope="module")
def web(web_only: StackSpec) -> Iterator[StackContext]:
    """The tiny service alone; each test leaves it ready."""
    with throwaway_stack(web_only) as context:
        yield context


@pytest.fixture
def name(web_only: StackSpec) -> str:
    return web_only.processes[0].name


def find_ready_pid(spec: StackSpec, context: StackContext) -> int:
    [found] = status(spec, context.settings)
    assert found.state == "ready"
    assert found.pid is not None
    return found.pid


def test_a_killed_process_gets_no_signal_that_it_could_handle_and_is_back(
    web_only: StackSpec, web: StackContext, name: str
) -> None:
    before = find_ready_pid(web_only, web)

    kill(web_only, web.settings, name)

    assert find_ready_pid(web_only, web) != before
    assert "terminated by SIGKILL" in web.folder.log_of("supervisord").read_text()


def test_a_stopped_process_does_not_run_for_that_long_and_is_back(
    web_only: StackSpec, web: StackContext, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[tuple[float, bool]] = []

    def sleep(seconds: float) -> None:
        waits.append((seconds, runs(web, web_only.processes[0])))

    monkeypatch.setattr(faults, "time", SimpleNamespace(sleep=sleep))
    stop(web_only, web.settings, name, STOPPED_SECONDS)

    assert waits == [(STOPPED_SECONDS, False)]
    find_ready_pid(web_only, web)


@pytest.mark.usefixtures("usual_signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_an_interrupted_stop_starts_the_process_again(
    web_only: StackSpec,
    web: StackContext,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
) -> None:
    def interrupt(_name: str, _seconds: float) -> None:
        signal.raise_signal(number)

    before = [signal.getsignal(each) for each in LEFT_ON]
    monkeypatch.setattr(faults, "report_stopped", interrupt)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        stop(web_only, web.settings, name, STOPPED_SECONDS_MAX)
    find_ready_pid(web_only, web)
    assert [signal.getsignal(each) for each in LEFT_ON] == before


@pytest.mark.usefixtures("usual_signals")
def test_a_signal_that_is_ignored_does_not_interrupt_a_stop(
    web_only: StackSpec, web: StackContext, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `nohup`."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    monkeypatch.setattr(faults, "report_stopped", lambda *words: signal.raise_signal(signal.SIGHUP))
    stop(web_only, web.settings, name, STOPPED_SECONDS)

    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    find_ready_pid(web_only, web)


@pytest.mark.usefixtures("usual_signals")
def test_a_second_signal_does_not_interrupt_the_start(
    web_only: StackSpec, web: StackContext, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A closed terminal sends several."""

    def start(folder: RunFolder, name: str) -> None:
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGTERM)
        usual_start(folder, name)

    usual_start = supervision.start
    monkeypatch.setattr(supervision, "start", start)
    monkeypatch.setattr(faults, "report_stopped", lambda *words: signal.raise_signal(signal.SIGHUP))
    with pytest.raises(SystemExit):
        stop(web_only, web.settings, name, STOPPED_SECONDS_MAX)
    find_ready_pid(web_only, web)


def test_in_a_thread_signals_stay_as_they_are(
    web_only: StackSpec, web: StackContext, name: str
) -> None:
    with ThreadPoolExecutor(1) as threads:
        threads.submit(stop, web_only, web.settings, name, STOPPED_SECONDS).result()
    find_ready_pid(web_only, web)


def test_a_process_that_is_about_to_be_started_again_is_one_that_runs(
    web_only: StackSpec, web: StackContext, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails at its start: that is when a developer wants to debug it."""
    found = supervision.programs(web.folder)
    assert found
    failing = {name: replace(found[name], state="BACKOFF", pid=0)}
    monkeypatch.setattr(supervision, "programs", lambda folder: failing)

    assert find_running(web_only, web.settings, name)[0].name == name


def test_a_process_that_is_not_started_again_is_reported(
    web_only: StackSpec, web: StackContext, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "RESTART_SECONDS_MAX", 1)
    monkeypatch.setattr(supervision, "send_signal", lambda *words: None)
    with pytest.raises(Failure, match="is not started again: `make status`"):
        kill(web_only, web.settings, name)


@pytest.mark.parametrize("seconds", [0.0, -1.0, STOPPED_SECONDS_MAX + 1, float("nan")])
def test_a_time_that_cannot_be_is_refused(
    web_only: StackSpec, settings: Settings, name: str, seconds: float
) -> None:
    with pytest.raises(Failure, match="more than 0, and 3600 at most"):
        stop(web_only, settings, name, seconds)


def test_what_does_not_run_is_neither_killed_nor_stopped(
    web_only: StackSpec, settings: Settings, name: str
) -> None:
    with pytest.raises(Failure, match="does not run here: `make status`"):
        kill(web_only, settings, name)
    with pytest.raises(Failure, match="does not run here: `make status`"):
        stop(web_only, settings, name, STOPPED_SECONDS)
