"""How the result of a probe is reported."""

import asyncio
from dataclasses import replace

import httpx
import pytest

from local_stack import readiness
from local_stack.readiness import NotReady
from local_stack.run_folder import RunFolder
from local_stack.stack_spec import Process, StackContext

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
    assert readiness.last_lines(log, 2) == []
    log.write_text("one\ntwo\nthree\n")
    assert readiness.last_lines(log, 2) == ["two", "three"]
