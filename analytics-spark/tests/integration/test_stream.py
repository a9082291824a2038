"""A listener gets every change, also after an interruption; a slow one is disconnected."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from analytics_spark.job import sink
from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.job.writer import open_writer
from analytics_spark.serving import change_feed, hour_queries, page, stream
from analytics_spark.serving.api import create_app
from analytics_spark.serving.bootstrap import Resources
from analytics_spark.serving.change_feed import Position
from analytics_spark.serving.stream import Event, open_feed
from local_stack import issuer
from local_stack.run_folder import RunFolder
from local_stack.testing import bearer
from shared.runtime import postgres
from shared.web.auth import RequestAuthenticator
from shared.web.connections import TimedConnection
from test_support.analytics.histories import HOUR, at
from test_support.analytics.served import BUCKETS, KnownEnds, Writer, purchase, served

LONG_SECONDS = 60
SHORT_SECONDS = 0.2
NEXT = HOUR + timedelta(hours=1)


class Impatient(TimedConnection):
    taken_seconds_max = SHORT_SECONDS


@dataclass(slots=True, kw_only=True)
class Heard:
    """One event, as it came."""

    name: str
    id: str
    hours: list[dict[str, Any]] = field(default_factory=list)

    @property
    def purchases(self) -> dict[str, int]:
        return {each["hour"]: each["purchases"] for each in self.hours}


@dataclass(slots=True, kw_only=True)
class Listener:
    """A client of the stream."""

    http: httpx.AsyncClient

    @asynccontextmanager
    async def reserve_slot(self, last_id: str | None = None) -> AsyncIterator[AsyncIterator[Heard]]:
        headers = {"Last-Event-ID": last_id} if last_id else {}
        async with self.http.stream("GET", "/v1/stream", headers=headers) as answer:
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/event-stream")
            async with aclosing(events_in(answer)) as events:
                yield events


async def events_in(answer: httpx.Response) -> AsyncGenerator[Heard, None]:
    values: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            values[name] = value
        elif "event" in values:
            hours = json.loads(values["data"])["hours"]
            yield Heard(name=values["event"], id=values.get("id", ""), hours=hours)
            values = {}


async def next_of(events: AsyncIterator[Heard]) -> Heard:
    async with asyncio.timeout(LONG_SECONDS):
        return await anext(events)


@pytest.fixture
def writer(tables: str, tmp_path: Path) -> Iterator[Writer]:
    with open_writer(tables, Checkpoint(tmp_path), BUCKETS) as connection:
        yield Writer(connection=connection)


@pytest.fixture(autouse=True)
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "POLL_SECONDS", 0.02)


@asynccontextmanager
async def opened(tables: str, seconds_max: float = LONG_SECONDS) -> AsyncIterator[Resources]:
    async with (
        postgres.open_pool(tables, name="test", connections_max=4) as pool,
        open_feed(pool, seconds_max) as feed,
    ):
        yield Resources(pool=pool, topic_ends=KnownEnds(None), feed=feed)


@pytest.fixture
async def resources(tables: str) -> AsyncIterator[Resources]:
    async with opened(tables) as resources:
        yield resources


@pytest.fixture
async def listener(
    resources: Resources, authenticator: RequestAuthenticator, issuing: RunFolder
) -> AsyncIterator[Listener]:
    async with (
        served(create_app(resources, authenticator), Impatient) as address,
        httpx.AsyncClient(
            base_url=address, headers=bearer(issuing, "analyst"), timeout=LONG_SECONDS
        ) as http,
    ):
        yield Listener(http=http)


async def test_a_batch_is_streamed_in_the_schema_of_the_hours(
    listener: Listener, writer: Writer
) -> None:
    async with listener.reserve_slot() as events:
        assert (await next_of(events)).name == "reset"
        writer.commit(purchase(HOUR), purchase(NEXT, "Lily"))
        first = await next_of(events)
        if first.name == "reset":  # before the first batch, there is no position to go on from
            writer.commit(purchase(HOUR, "Tom"), purchase(NEXT, "Lucy"))
            first = await next_of(events)

    page = (await listener.http.get("/v1/hours")).json()
    assert first.name == "hours"
    assert first.hours == page["hours"]
    assert list(first.purchases.values()) == [2, 2]


async def test_an_interrupted_listener_gets_what_it_missed_and_no_more(
    listener: Listener, writer: Writer
) -> None:
    writer.commit(purchase(HOUR))
    async with listener.reserve_slot() as events:
        last_id = (await next_of(events)).id
    writer.commit(purchase(NEXT))
    writer.commit(purchase(NEXT, "Lily"))

    async with listener.reserve_slot(last_id) as events:
        missed = await next_of(events)
    async with listener.reserve_slot(missed.id) as events:
        writer.commit(purchase(HOUR, "Lily"))
        later = await next_of(events)

    assert missed.purchases == {"2016-11-11T01:00:00Z": 2}
    assert later.purchases == {"2016-11-11T00:00:00Z": 2}


async def test_an_hour_that_becomes_final_is_streamed_though_nothing_else_changed(
    listener: Listener, writer: Writer
) -> None:
    writer.commit(purchase(HOUR), watermark=at(30))
    async with listener.reserve_slot() as events:
        await next_of(events)
        writer.commit(watermark=at(59))
        writer.commit(watermark=at(60))
        heard = await next_of(events)

    assert [(each["hour"], each["final"]) for each in heard.hours] == [
        ("2016-11-11T00:00:00Z", True)
    ]


async def test_an_hour_that_lost_its_purchases_is_streamed_with_zeros(
    listener: Listener, writer: Writer
) -> None:
    writer.commit(purchase(HOUR))
    async with listener.reserve_slot() as events:
        await next_of(events)
        writer.commit(purchase(HOUR, purchases=-1, quantity=-3, cents=-16_166_64))
        heard = await next_of(events)

    assert heard.purchases == {"2016-11-11T00:00:00Z": 0}


@pytest.mark.parametrize("last_id", ["", "7", "nonsense", f"{'0' * 8}-0000-0000-0000-{'0' * 12}.0"])
async def test_an_unknown_position_gets_a_reset(
    listener: Listener, writer: Writer, last_id: str
) -> None:
    writer.commit(purchase(HOUR))

    async with listener.reserve_slot(last_id) as events:
        heard = await next_of(events)

    assert (heard.name, heard.hours) == ("reset", [])
    assert heard.id == f"{writer.query_id}.0"


async def test_a_forgotten_position_gets_a_reset(
    listener: Listener, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "BATCHES_KEPT_MAX", 2)
    for _ in range(4):
        writer.commit(purchase(HOUR))

    async def first_after(batch_id: int) -> str:
        async with listener.reserve_slot(f"{writer.query_id}.{batch_id}") as events:
            return (await next_of(events)).name

    assert await first_after(2) == "hours"
    assert await first_after(1) == "reset"


async def test_a_position_before_batches_noted_their_hours_gets_a_reset(
    listener: Listener, writer: Writer
) -> None:
    writer.commit(purchase(HOUR))
    writer.commit(purchase(HOUR))
    writer.connection.execute("UPDATE batches SET hours = NULL WHERE batch_id = 1")

    async with listener.reserve_slot(f"{writer.query_id}.0") as events:
        assert (await next_of(events)).name == "reset"


async def test_a_listener_that_missed_too_much_gets_a_reset(
    listener: Listener, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_feed, "HOURS_PER_CHANGE_MAX", 2)
    writer.commit(purchase(HOUR))
    writer.commit(*(purchase(HOUR + timedelta(hours=each)) for each in range(3)))

    async with listener.reserve_slot(f"{writer.query_id}.0") as events:
        assert (await next_of(events)).name == "reset"


async def follow(resources: Resources, known: dict[datetime, int], until: int) -> None:
    """Keep what is heard, and be interrupted after each event."""
    position: Position | None = None
    while position is None or position.batch_id < until:
        async with aclosing(resources.feed.events(position)) as events:
            event = await anext(events)
        position = event.position
        if event.hours is None:
            async with hour_queries.snapshot(resources.pool) as connection:
                found = await hour_queries.list_hours(
                    connection, since=None, until=None, after=None, limit=ROUNDS
                )
            known.clear()
            known.update((hour, totals.local.purchases) for hour, totals in found)
        known.update((hour, totals.local.purchases) for hour, totals in event.hours or ())
        await asyncio.sleep(SHORT_SECONDS / 4)


async def commit_rounds(writer: Writer) -> None:
    for each in range(ROUNDS):
        await asyncio.to_thread(writer.commit, purchase(HOUR + timedelta(hours=each)))


ROUNDS = 40
EVERY_HOUR = {HOUR + timedelta(hours=each): 1 for each in range(ROUNDS)}


async def test_nothing_is_lost_between_the_missed_changes_and_the_feed(
    resources: Resources, writer: Writer
) -> None:
    known: dict[datetime, int] = {}
    async with asyncio.timeout(LONG_SECONDS), asyncio.TaskGroup() as tasks:
        tasks.create_task(follow(resources, known, until=ROUNDS - 1))
        tasks.create_task(commit_rounds(writer))

    assert known == EVERY_HOUR


async def test_without_the_missed_changes_changes_are_lost(
    resources: Resources, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing_was_missed(position: Position | None) -> Event:
        newest = await change_feed.find_newest(resources.pool)
        return Event(position=newest, watermark=None, hours=None if position is None else [])

    monkeypatch.setattr(resources.feed, "_read_missed", nothing_was_missed)
    known: dict[datetime, int] = {}
    following = asyncio.create_task(follow(resources, known, until=ROUNDS - 1))
    await commit_rounds(writer)
    await asyncio.wait([following], timeout=1)  # without the last change it never ends
    following.cancel()

    assert known.items() < EVERY_HOUR.items()


async def settled(is_right: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG_SECONDS):
        while not is_right():
            await asyncio.sleep(0.01)


async def test_a_slow_listener_is_disconnected_and_misses_nothing(
    resources: Resources, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = resources.feed
    feed._events = deque(maxlen=2)
    writer.commit(purchase(HOUR))
    async with aclosing(feed.events(None)) as events:
        position = (await anext(events)).position
        writer.commit(purchase(HOUR, "first"))
        position = (await anext(events)).position
        for each in range(4):
            published = feed._published
            writer.commit(purchase(HOUR + timedelta(hours=each), "later"))
            await settled(lambda published=published: feed._published > published)  # type: ignore[misc]

        assert [event async for event in events] == []
    assert len(feed._events) == 2
    async with aclosing(feed.events(position)) as events:
        missed = (await anext(events)).hours
    assert [totals.local.purchases for _, totals in missed or ()] == [3, 1, 1, 1]


def deaf_client(address: str, headers: dict[str, str]) -> socket.socket:
    """Asks for the stream, and reads nothing of it."""
    url = httpx.URL(address)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect((url.host, url.port))
    lines = ["GET /v1/stream HTTP/1.1", "Host: x", *(f"{n}: {v}" for n, v in headers.items())]
    client.sendall("\r\n".join([*lines, "", ""]).encode())
    return client


async def test_a_client_that_does_not_read_is_disconnected(
    listener: Listener, resources: Resources, writer: Writer, issuing: RunFolder
) -> None:
    many = [HOUR + timedelta(hours=each) for each in range(change_feed.HOURS_PER_CHANGE_MAX)]
    with deaf_client(str(listener.http.base_url), bearer(issuing, "analyst")):
        await settled(lambda: resources.feed._listeners == 1)
        async with asyncio.timeout(LONG_SECONDS):
            while resources.feed._listeners:
                deltas = [purchase(hour, f"user {writer.batches}") for hour in many]
                await asyncio.to_thread(writer.commit, *deltas)

    assert len(resources.feed._events) <= stream.EVENTS_KEPT_MAX


async def test_the_number_of_listeners_is_limited(
    listener: Listener, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "LISTENERS_MAX", 1)
    async with listener.reserve_slot() as events:
        await next_of(events)
        refused = await listener.http.get("/v1/stream")
    await settled(lambda: resources.feed._listeners == 0)
    async with listener.reserve_slot() as events:
        await next_of(events)

    assert refused.status_code == 503
    assert refused.json()["code"] == "too-many-listeners"


async def test_visitors_of_the_page_leave_places_to_callers_with_a_token(
    resources: Resources,
    authenticator: RequestAuthenticator,
    issuing: RunFolder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "LISTENERS_MAX", 2)
    monkeypatch.setattr(stream, "VISITORS_MAX", 1)
    app = create_app(resources, authenticator, page.routes(None, authenticator.rates))
    async with (
        served(app) as address,
        httpx.AsyncClient(base_url=address, timeout=LONG_SECONDS) as visitor,
        httpx.AsyncClient(
            base_url=address, headers=bearer(issuing, "analyst"), timeout=LONG_SECONDS
        ) as analyst,
        visitor.stream("GET", "/page/changes") as shown,
    ):
        refused = await visitor.get("/page/changes")
        async with Listener(http=analyst).reserve_slot() as events:
            heard = await next_of(events)

    assert (shown.status_code, heard.name) == (200, "reset")
    assert (refused.status_code, refused.json()["code"]) == (503, "too-many-listeners")


async def test_a_stream_needs_the_scope_of_the_hours(
    listener: Listener, issuing: RunFolder
) -> None:
    refused = await listener.http.get("/v1/stream", headers=bearer(issuing, "clerk"))
    async with httpx.AsyncClient(base_url=listener.http.base_url) as stranger:
        unknown = await stranger.get("/v1/stream")

    assert (refused.status_code, refused.json()["code"]) == (403, "insufficient-scope")
    assert (unknown.status_code, unknown.json()["code"]) == (401, "unauthenticated")


async def test_a_stream_ends_after_its_time(tables: str) -> None:
    async with opened(tables, seconds_max=SHORT_SECONDS) as resources:
        assert [event.hours async for event in resources.feed.events(None)] == [None]


async def test_a_feed_without_a_first_poll_can_be_closed(tables: str) -> None:
    async with postgres.open_pool(tables, name="test", connections_max=1) as pool:
        feed = stream.Feed(pool, LONG_SECONDS)
        listening = asyncio.create_task(anext(feed.events(None)))
        await asyncio.sleep(0)
        feed.close()
        with pytest.raises(StopAsyncIteration):
            await listening


async def test_a_stream_ends_when_the_database_is_unavailable_and_nothing_is_missed(
    tables: str, writer: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    writer.commit(purchase(HOUR))
    async with opened(tables) as away:
        position = await change_feed.find_newest(away.pool)
        await settled(away.feed._has_begun.is_set)
        await away.pool.close()
        assert [event async for event in away.feed.events(position)] == []
    writer.commit(purchase(NEXT))
    async with opened(tables) as back, aclosing(back.feed.events(position)) as events:
        heard = await anext(events)

    assert [hour for hour, _ in heard.hours or ()] == [NEXT]
    assert "cannot read the changes for a listener" in caplog.text


async def test_an_open_stream_does_not_delay_the_end_of_the_process(
    tables: str, issuing: RunFolder, unused_tcp_port: int
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "analytics_spark", "api"),
        env=os.environ
        | issuer.variables(issuing)
        | {
            "ENVIRONMENT": "development",
            "DATABASE_URL": tables,
            "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
            "HTTP_PORT": str(unused_tcp_port),
        },
        stderr=asyncio.subprocess.PIPE,
    )
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{unused_tcp_port}",
        headers=bearer(issuing, "analyst"),
        timeout=LONG_SECONDS,
    ) as http:
        await answering(http)
        async with Listener(http=http).reserve_slot() as events:
            assert (await next_of(events)).name == "reset"
            process.send_signal(signal.SIGTERM)
            with pytest.raises(StopAsyncIteration):
                await next_of(events)
    async with asyncio.timeout(LONG_SECONDS):
        _, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    assert b"Cancel" not in complaints


async def answering(http: httpx.AsyncClient) -> None:
    async with asyncio.timeout(LONG_SECONDS):
        while True:
            try:
                (await http.get("/health/ready")).raise_for_status()
            except httpx.HTTPError:
                await asyncio.sleep(0.05)
            else:
                return
