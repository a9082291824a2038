"""An API that is replaced under load: no request fails, the socket listens all the time."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from local_stack import ports
from test_support.http_server import receiving
from test_support.system.eventually import POLL_SECONDS
from test_support.waits import HANGS_AFTER_SECONDS

MAIN = Path(__file__).with_name("api_main.py")
CLIENTS = 8
DRAIN_SECONDS_MIN = 2.5
"""More than an API drains without it."""
ENOUGH = 200
"""Requests before the replacement, and after it."""


@dataclass(slots=True)
class Api:
    """A process that listens on a port, and that can be started again there."""

    port: int
    settings: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        environment = os.environ | {"HTTP_PORT": str(self.port), "ENVIRONMENT": "development"}
        environment |= self.settings
        self.process = subprocess.Popen([sys.executable, MAIN], env=environment)

    def send(self, number: signal.Signals) -> None:
        assert self.process
        self.process.send_signal(number)

    def end(self) -> None:
        assert self.process
        self.process.kill()
        self.process.wait()


@asynccontextmanager
async def running(**settings: str) -> AsyncIterator[tuple[Api, httpx.AsyncClient]]:
    api = Api(ports.find_free(), settings=settings)
    api.start()
    try:
        async with httpx.AsyncClient(base_url=api.url, timeout=HANGS_AFTER_SECONDS) as client:
            await ready_since(client, "")
            yield api, client
    finally:
        api.end()


async def ready_since(client: httpx.AsyncClient, before: str) -> str:
    """When the process was started, as soon as one is ready that was started after `before`."""
    async with asyncio.timeout(HANGS_AFTER_SECONDS):
        while True:
            try:
                answer = await client.get("/health/ready", headers={"Connection": "close"})
                if answer.is_success and answer.json()["started_at"] > before:
                    return str(answer.json()["started_at"])
            except httpx.TransportError:
                pass
            await asyncio.sleep(POLL_SECONDS)


@dataclass(slots=True)
class Load:
    """Requests on kept connections, one after the other on each, until it is stopped."""

    client: httpx.AsyncClient
    succeeded: int = 0
    failures: list[str] = field(default_factory=list)
    is_over: bool = False

    async def run(self) -> None:
        while not self.is_over:
            try:
                (await self.client.get("/fast")).raise_for_status()
                self.succeeded += 1
            except httpx.HTTPError as error:
                self.failures.append(repr(error))
                await asyncio.sleep(POLL_SECONDS)

    async def until(self, count: int) -> None:
        async with asyncio.timeout(HANGS_AFTER_SECONDS):
            while self.succeeded < count:
                await asyncio.sleep(POLL_SECONDS)


@asynccontextmanager
async def load(client: httpx.AsyncClient) -> AsyncIterator[Load]:
    made = Load(client)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(CLIENTS):
            tasks.create_task(made.run())
        try:
            await made.until(ENOUGH)
            yield made
            await made.until(made.succeeded + ENOUGH)
        finally:
            made.is_over = True


async def test_no_request_fails_while_an_api_is_replaced() -> None:
    async with running() as (api, client):
        before = await ready_since(client, "")
        async with load(client) as sent:
            api.send(signal.SIGHUP)
            await ready_since(client, before)

        assert sent.failures == []
        assert api.process
        assert api.process.poll() is None, "it is the same process"


async def test_a_signal_during_its_start_replaces_it_afterwards() -> None:
    """Sent all the time, so at each moment of the start."""
    async with running() as (api, client):
        before = await ready_since(client, "")
        async with load(client) as sent:
            for _ in range(100):
                api.send(signal.SIGHUP)
                await asyncio.sleep(0.03)
            await ready_since(client, before)

        assert sent.failures == []
        assert api.process
        assert api.process.poll() is None, "it is the same process"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM], ids=lambda each: each.name)
async def test_the_spans_of_its_last_moment_are_sent(number: signal.Signals) -> None:
    with receiving() as (address, received):
        async with running(OTEL_EXPORTER_OTLP_ENDPOINT=address) as (api, client):
            before = await ready_since(client, "")
            await client.get("/traced")
            api.send(number)
            if number == signal.SIGHUP:
                await ready_since(client, before)
            else:
                assert api.process
                assert await asyncio.to_thread(api.process.wait, HANGS_AFTER_SECONDS) == 0

    [body] = received
    assert b"the last moment" in body


async def test_an_api_that_is_stopped_and_started_again_refuses_connections() -> None:
    """The negative control: what is lost without the socket that goes on listening."""
    async with running() as (api, client):
        async with load(client) as sent:
            api.send(signal.SIGTERM)
            assert api.process
            await asyncio.to_thread(api.process.wait, HANGS_AFTER_SECONDS)
            api.start()
            await ready_since(client, "")

        assert sent.failures


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM], ids=lambda each: each.name)
async def test_a_request_that_waits_is_answered_before_the_end(number: signal.Signals) -> None:
    async with running() as (api, client):
        waiting = asyncio.create_task(client.get("/slow"))
        await client.get("/fast")

        api.send(number)
        answer = await waiting

        assert answer.text == "slow"


async def test_it_is_not_ready_and_closes_connections_while_it_stops() -> None:
    async with running() as (api, client), httpx.AsyncClient(base_url=api.url) as other:
        await other.get("/fast")
        idle = (await client.get("/fast")).headers
        api.send(signal.SIGTERM)
        async with asyncio.timeout(HANGS_AFTER_SECONDS):
            while (ready := await client.get("/health/ready")).is_success:
                await asyncio.sleep(POLL_SECONDS / 10)

        assert "connection" not in idle
        assert ready.status_code == httpx.codes.SERVICE_UNAVAILABLE
        assert ready.json()["detail"] == "the process is stopping"
        assert ready.headers["connection"] == "close"


async def test_connections_are_refused_once_a_stop_accepts_no_more() -> None:
    """A connection that is queued behind that would be reset at the end, with its request."""
    async with running() as (api, client):
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
        await client.get("/fast")
        api.send(signal.SIGTERM)
        async with asyncio.timeout(HANGS_AFTER_SECONDS):
            while await is_accepted(api):
                await asyncio.sleep(POLL_SECONDS / 10)

        writer.write(b"GET /fast HTTP/1.1\r\nHost: api\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n", "it serves what is open"
        writer.close()
        await writer.wait_closed()


async def is_accepted(api: Api) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", api.port)
    except ConnectionRefusedError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def test_an_api_behind_a_proxy_accepts_connections_until_that_has_noticed() -> None:
    async with running(HTTP_DRAIN_SECONDS_MIN=str(DRAIN_SECONDS_MIN)) as (api, client):
        await client.get("/fast", headers={"Connection": "close"})
        began = time.monotonic()
        api.send(signal.SIGTERM)
        while await is_accepted(api):
            await asyncio.sleep(POLL_SECONDS / 10)

        assert time.monotonic() - began >= DRAIN_SECONDS_MIN
