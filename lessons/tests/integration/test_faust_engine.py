"""An application of Faust leaves nothing behind, whatever ends it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

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
            with pytest.raises(TimeoutError, match=f"do not read {prefix}orders"):
                await faust_engine.wait_until_read(topics, app, seconds_max=0)
