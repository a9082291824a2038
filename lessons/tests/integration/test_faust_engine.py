"""An application of Faust leaves nothing behind, whatever ends it."""

import asyncio
from pathlib import Path

import pytest

from lessons import faust_engine
from lessons.broker import PREFIX, open_topics


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
