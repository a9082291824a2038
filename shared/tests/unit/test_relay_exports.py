"""The spans of what was published are exported before a checkpoint says that it was."""

import asyncio
import threading
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from shared.messaging import messages, wire
from shared.messaging.wire import OutgoingRecord
from shared.outbox import relay
from shared.outbox.outbox import RelayCheckpoint, Snapshot
from shared.outbox.relay import ActiveRelay
from shared.outbox.relay_trace import BatchTrace
from shared.runtime import telemetry
from test_support.waits import HANGS_AFTER_SECONDS

RECORDED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def ignore(*_: object) -> None:
    pass


class Publishing:
    """A relay with a lease that remembers checkpoints, and a collector that can be silent."""

    def __init__(self) -> None:
        self.stored: list[int] = []
        self.flushes = 0
        self.speaks = threading.Event()
        nothing: Any = None
        lease: Any = SimpleNamespace(store=self._store, check=lambda: None, release=ignore)
        start = RelayCheckpoint(Snapshot("1"))
        self.relay = ActiveRelay(
            nothing, nothing, lease, start, nothing, nothing, name="test", connect=nothing
        )

    async def _store(self, _: object, progress: RelayCheckpoint) -> None:
        self.stored.append(int(progress.published.xmax))

    def flush(self) -> bool:
        self.flushes += 1
        return self.speaks.wait(HANGS_AFTER_SECONDS)

    async def publish(self, traceparent: str | None, xmax: int) -> None:
        """Publish a row, and progress."""
        headers = [(messages.ID, b"an event"), (messages.TYPE, b"counted")]
        record = OutgoingRecord("counters.v1", 0, b"key", b"value", wire.pack(headers), 0)
        fields = record._asdict()
        row: Any = SimpleNamespace(position=1, traceparent=traceparent, record=record, **fields)

        async def take(*_: object) -> list[Any]:
            return []

        taking: Any = SimpleNamespace(publish=take)
        await self.relay._publish(taking, [row])
        self.relay._progress = RelayCheckpoint(Snapshot(str(xmax)))

    async def tick(self) -> list[int]:
        """What is stored when the next checkpoint is due, of an export that is not silent."""
        exporting = self.relay._exporting
        if exporting is not None and self.speaks.is_set():
            await asyncio.wait([exporting._task])
        await self.relay._store_exported()
        return self.stored


@pytest.fixture
async def publishing(
    monkeypatch: pytest.MonkeyPatch, spans: InMemorySpanExporter
) -> AsyncIterator[Publishing]:
    made = Publishing()
    monkeypatch.setattr(telemetry, "flush", made.flush)
    yield made
    made.speaks.set()  # before the event loop ends, which waits for its threads


async def test_a_checkpoint_waits_for_the_spans_of_what_it_covers(publishing: Publishing) -> None:
    await publishing.publish(RECORDED, 5)
    assert await publishing.tick() == []
    await publishing.publish(RECORDED, 9)
    assert await publishing.tick() == []

    publishing.speaks.set()

    assert await publishing.tick() == [5]
    await publishing.tick()
    assert await publishing.tick() == [5, 9]
    assert publishing.flushes == 2


async def test_without_spans_nothing_is_waited_for(publishing: Publishing) -> None:
    await publishing.publish(None, 5)

    assert await publishing.tick() == [5]
    assert publishing.flushes == 0


async def test_a_silent_collector_holds_no_checkpoint_up_for_longer(
    publishing: Publishing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "EXPORT_SECONDS_MAX", 0.0)
    await publishing.publish(RECORDED, 5)
    await publishing.tick()

    assert await publishing.tick() == [5]


async def test_the_event_loop_does_not_wait_for_room_for_spans(
    publishing: Publishing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has to renew the lease."""
    threads: list[int] = []
    monkeypatch.setattr(BatchTrace, "_end", lambda *_: threads.append(threading.get_ident()))

    await publishing.publish(RECORDED, 5)

    assert threads
    assert threading.get_ident() not in threads


async def test_at_the_end_the_last_progress_is_stored_at_once(publishing: Publishing) -> None:
    await publishing.publish(RECORDED, 5)

    await publishing.relay.hand_over()

    assert publishing.stored == [5]
