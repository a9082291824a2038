"""Readiness names what fails, to any caller, and logs why, once."""

import httpx
import pytest
from starlette.applications import Starlette

from shared.runtime import metrics
from shared.web import health
from shared.web.health import Check, health_routes
from test_support.written_log import written_log

HIDDEN = "password authentication failed for user on 10.0.0.7"


def client_of(check: Check) -> httpx.AsyncClient:
    app = Starlette(routes=health_routes({"database": check}))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


async def test_the_text_of_an_error_is_logged_once_a_minute_and_not_returned() -> None:
    async def check() -> str | None:
        raise ConnectionError(HIDDEN)

    with written_log() as written:
        async with client_of(check) as client:
            answers = [await client.get("/health/ready") for _ in range(3)]

    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (503, "not-ready")
        assert answer.json()["detail"] == "database: ConnectionError"
    [line] = written.find("the health check database fails")
    assert HIDDEN in line["error"]


async def test_what_a_check_finds_is_returned() -> None:
    async def check() -> str | None:
        return "no response for 7 s"

    async with client_of(check) as client:
        answer = await client.get("/health/ready")

    assert answer.json()["detail"] == "database: no response for 7 s"


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
