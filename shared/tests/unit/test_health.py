"""Readiness names what fails, to any caller, and logs why, once."""

import logging

import httpx
import pytest
from starlette.applications import Starlette

from shared.runtime import metrics
from shared.web import health
from shared.web.health import Check, health_routes

HIDDEN = "password authentication failed for user on 10.0.0.7"


def client_of(check: Check) -> httpx.AsyncClient:
    app = Starlette(routes=health_routes({"database": check}))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


async def test_the_text_of_an_error_is_logged_once_and_not_returned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)

    async def check() -> str | None:
        raise ConnectionError(HIDDEN)

    async with client_of(check) as client:
        answers = [await client.get("/health/ready") for _ in range(3)]

    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (503, "not-ready")
        assert answer.json()["detail"] == "database: ConnectionError"
    [line] = caplog.records
    assert HIDDEN in line.getMessage()


async def test_what_a_check_finds_is_returned() -> None:
    async def check() -> str | None:
        return "no response for 7 s"

    async with client_of(check) as client:
        answer = await client.get("/health/ready")

    assert answer.json()["detail"] == "database: no response for 7 s"


async def test_the_next_failure_is_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    errors: list[Exception | None] = [ConnectionError(), None, ConnectionError()]

    async def check() -> str | None:
        if error := errors.pop():
            raise error
        return None

    async with client_of(check) as client:
        statuses = [(await client.get("/health/ready")).status_code for _ in range(3)]

    assert statuses == [503, 200, 503]
    assert len(caplog.records) == 2


@pytest.mark.parametrize(("seconds_min", "collections"), [(3600.0, 1), (0.0, 3)])
async def test_metrics_are_collected_once_in_a_time_however_often_they_are_read(
    monkeypatch: pytest.MonkeyPatch, seconds_min: float, collections: int
) -> None:
    monkeypatch.setattr(health, "COLLECT_SECONDS_MIN", seconds_min)
    texts = iter([b"first", b"second", b"third"])
    monkeypatch.setattr(metrics, "expose", lambda: next(texts))

    async def check() -> str | None:
        return None

    async with client_of(check) as client:
        answers = [await client.get("/metrics") for _ in range(3)]

    assert len({answer.text for answer in answers}) == collections
    assert answers[0].headers["Content-Type"].startswith("text/plain")
