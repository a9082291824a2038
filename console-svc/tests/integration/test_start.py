"""The console as a process: in development only, and in containers without control."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping

import httpx
import pytest

from local_stack.ports import find_free

START_SECONDS_MAX = 60
COMMAND = [sys.executable, "-m", "console_svc", "serve"]


def environment(**changed: str) -> Mapping[str, str]:
    return os.environ | {"OTEL_METRICS_EXPORTER": "none"} | changed


@pytest.mark.parametrize("chosen", [{}, {"ENVIRONMENT": "production"}])
def test_it_does_not_start_outside_of_development(chosen: Mapping[str, str]) -> None:
    ended = subprocess.run(
        COMMAND, env=environment(**chosen), capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode == 1
    assert "the console is for development" in ended.stderr


@pytest.fixture
def address() -> Iterator[str]:
    """Of a console as it runs in a container, whose stack is not there."""
    port = find_free()
    process = subprocess.Popen(
        COMMAND,
        env=environment(
            ENVIRONMENT="development",
            HTTP_PORT=str(port),
            PUBLIC_ADDRESSES=json.dumps({"users-api": "http://127.0.0.1:8001"}),
        ),
    )
    try:
        address = f"http://127.0.0.1:{port}"
        wait_until_ready(address)
        yield address
    finally:
        process.terminate()
        assert process.wait(START_SECONDS_MAX) == 0


def wait_until_ready(address: str) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            httpx.get(f"{address}/health/ready").raise_for_status()
            return
        except httpx.HTTPError:
            assert time.monotonic() < deadline, "the console is not ready"
            time.sleep(0.1)


def test_where_nothing_runs_all_is_down_and_the_page_is_there(address: str) -> None:
    html = httpx.get(address, timeout=START_SECONDS_MAX).text

    assert "docker compose kill users-relay" in html
    assert "http://127.0.0.1:8001/docs" in html
    assert '<span class="state down">down</span>' in html
