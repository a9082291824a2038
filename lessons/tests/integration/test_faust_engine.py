"""An application of Faust leaves nothing behind, whatever ends it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient

from lessons import faust_engine
from lessons.broker import PREFIX, open_topics
from lessons.lesson import Record


async def test_a_start_that_is_interrupted_is_stopped(
    kafka_servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = faust_engine.make_app(f"{PREFIX}interrupted", kafka_servers, str(tmp_path))

    async def interrupt() -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(app, "start", interrupt)

    async with open_topics(kafka_servers) as topics:
        with pytest.raises(asyncio.CancelledError):
            async with faust_engine.running(app, topics):
                pass

    assert app.should_stop


async def test_what_an_agent_does_not_read_is_named(kafka_servers: str, tmp_path: Path) -> None:
    prefix = f"{PREFIX}unread."
    app = faust_engine.make_app(f"{prefix}agents", kafka_servers, str(tmp_path))
    records = faust_engine.read_records(app, prefix, ["orders"])

    @app.agent(records["orders"])
    async def take_first_only(stream: Any) -> None:
        async for _ in stream:
            await asyncio.Event().wait()

    async with open_topics(kafka_servers) as topics, topics.remove_around(prefix):
        await topics.create([f"{prefix}orders"])
        async with faust_engine.running(app, topics):
            # All there is has been read: no time is needed.
            await faust_engine.wait_until_read(topics, app, seconds_max=0)
            await topics.publish(prefix, [Record(topic="orders", value="1")])
            with pytest.raises(TimeoutError, match=f"not read by the agents of .*: {prefix}orders"):
                await faust_engine.wait_until_read(topics, app, seconds_max=0)


async def test_a_producer_keeps_the_topics_that_it_knows(
    kafka_servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that has asked for all topics forgets them as soon as it asks for one by name."""
    asked: list[tuple[AIOKafkaClient, set[str]]] = []
    ask = AIOKafkaClient._metadata_update

    async def note_and_ask(client: AIOKafkaClient, cluster: Any, topics: set[str]) -> Any:
        asked.append((client, set(topics)))
        return await ask(client, cluster, topics)

    monkeypatch.setattr(AIOKafkaClient, "_metadata_update", note_and_ask)
    prefix = f"{PREFIX}names."
    app = faust_engine.make_app(f"{prefix}agents", kafka_servers, str(tmp_path))
    records = faust_engine.read_records(app, prefix, ["orders"])
    out, orders = app.topic(f"{prefix}out", value_serializer="json"), app.Table("orders")

    @app.agent(records["orders"])
    async def keep(stream: Any) -> None:
        async for event in stream.events():
            orders["last"] = event.value.decode()
            await out.send(value=orders["last"])

    async with open_topics(kafka_servers) as topics, topics.remove_around(prefix):
        await topics.create([f"{prefix}orders", f"{prefix}out"])
        async with faust_engine.running(app, topics):
            await topics.publish(prefix, [Record(topic="orders", value="1")])
            await faust_engine.wait_until_read(topics, app)
            client = app.producer._ensure_producer().client  # type: ignore[attr-defined]

    of_producer = [names for each, names in asked if each is client]
    assert of_producer
    assert all(of_producer)
    assert of_producer[-1] == {f"{prefix}out", f"{prefix}agents-orders-changelog"}
