"""How the result of a probe is reported."""

import asyncio
from dataclasses import replace

import httpx
import pytest

from fetching.errors import Failure
from local_stack import logs, readiness
from local_stack.readiness import NotReady, wait_until_ready
from local_stack.run_folder import RunFolder
from local_stack.stack_spec import Process, StackContext
from local_stack.supervision import Program

WEB = Process(name="web", command=lambda _: ["true"])


def obstacle(context: StackContext, error: Exception) -> str | None:
    async def probe(_: StackContext) -> None:
        raise error

    return asyncio.run(readiness.obstacle(context, replace(WEB, probe=probe)))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(), "no process listens on its port"),
        (TimeoutError(), "no answer within 5 s"),
        (NotReady("/health/ready answers 503: no database"), "/health/ready answers 503"),
        (httpx.ReadError(""), "ReadError"),
    ],
)
def test_every_way_of_not_answering_has_a_text(
    context: StackContext, error: Exception, words: str
) -> None:
    assert (obstacle(context, error) or "").startswith(words)


class Supervisor:
    """A supervisor that reports one state of the program after the other, and then the last."""

    def __init__(self, *states: tuple[str, int, int]) -> None:
        self.states = list(states)

    def programs(self, folder: RunFolder) -> dict[str, Program]:
        state, pid, status = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        program = Program(
            name="web", state=state, pid=pid, started_at_seconds=pid, exit_status=status, error=""
        )
        return {"web": program}


def wait(context: StackContext, process: Process) -> float:
    return asyncio.run(wait_until_ready(context, process, seconds_max=60))


ENDS = [("STARTING", 1, 0), ("EXITED", 0, 1)]


@pytest.mark.parametrize("process", [WEB, replace(WEB, required=False, on_request=True)])
def test_a_process_that_has_ended_and_is_restarted_is_waited_for(
    context: StackContext, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = Supervisor(*ENDS, ("EXITED", 0, 1), ("RUNNING", 2, 0))
    monkeypatch.setattr(readiness, "supervision", supervisor)
    monkeypatch.setattr(readiness, "POLL_SECONDS", 0)

    async def second_start(_: StackContext) -> None:
        if supervisor.states != [("RUNNING", 2, 0)]:
            raise NotReady("starts")

    wait(context, replace(process, probe=second_start))


@pytest.mark.parametrize(
    ("process", "states"),
    [
        (WEB, [*ENDS, ("STARTING", 2, 0), ("EXITED", 0, 1), ("STARTING", 3, 0)]),
        (WEB, [*ENDS, ("FATAL", 0, 1)]),
        (replace(WEB, required=False), [("RUNNING", 1, 0), ("EXITED", 0, 0)]),
    ],
    ids=["keeps ending", "is given up", "had nothing to do"],
)
def test_a_process_that_will_not_be_ready_is_not_waited_for(
    context: StackContext,
    process: Process,
    states: list[tuple[str, int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readiness, "supervision", Supervisor(*states))
    monkeypatch.setattr(readiness, "POLL_SECONDS", 0)

    async def never(_: StackContext) -> None:
        raise NotReady("not yet")

    with pytest.raises(Failure, match="web is not ready after 0 s"):
        wait(context, replace(process, probe=never))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"title": "Not ready", "detail": "no database"}', "no database"),
        ('{"title": "Not ready"}', "Not ready"),
        ('["odd"]', '["odd"]'),
        ("plain", "plain"),
    ],
)
def test_a_problem_is_reported_in_its_own_words(body: str, words: str) -> None:
    assert readiness.problem(httpx.Response(503, text=body)) == words


def test_the_end_of_a_log_and_of_none(folder: RunFolder) -> None:
    log = folder.log_of("web")
    assert logs.last_lines(log, 2) == []
    log.write_text("one\ntwo\nthree\n")
    assert logs.last_lines(log, 2) == ["two", "three"]
