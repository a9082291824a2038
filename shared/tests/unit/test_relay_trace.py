"""A row of the outbox has one `send` span in its trace, whatever it took to publish it."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from aiokafka.errors import KafkaConnectionError, RequestTimedOutError
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from shared.messaging import messages, wire
from shared.messaging.kafka import NotAcknowledged
from shared.messaging.wire import OutgoingRecord
from shared.outbox.relay_trace import BatchTrace
from shared.runtime import telemetry

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def a_row(position: int, *, partition: int = 0, traceparent: str | None = PARENT) -> Any:
    """Make a row with an event of its own."""
    headers = [
        (messages.ID, f"event {position}".encode()),
        (messages.TYPE, b"counted"),
        (telemetry.TRACEPARENT, PARENT.encode()),
    ]
    record = OutgoingRecord("counters.v1", partition, b"key", b"value", wire.pack(headers), 0)
    return SimpleNamespace(
        position=position, traceparent=traceparent, record=record, **record._asdict()
    )


async def publish(*rows: Any, error: Exception | None = None) -> list[str]:
    """Publish rows, or raise the error; return the parents that the records name."""
    async with BatchTrace(rows) as trace:
        headers = [dict(wire.unpack(record.headers)) for record in trace.records()]
        if error is not None:
            raise error
    return [each[telemetry.TRACEPARENT].decode() for each in headers]


def find_sends(spans: InMemorySpanExporter) -> Mapping[str, ReadableSpan]:
    """Find the `send` spans by the event of their rows."""
    sends = [each for each in spans.get_finished_spans() if each.name == "send counters.v1"]
    found = {str((each.attributes or {})[telemetry.MESSAGING_MESSAGE_ID]): each for each in sends}
    assert len(found) == len(sends)
    return found


async def test_a_record_names_its_span_as_the_parent_of_what_follows(
    spans: InMemorySpanExporter,
) -> None:
    [first, second] = await publish(a_row(1), a_row(2, traceparent=None))

    [(event, span)] = find_sends(spans).items()
    assert event == "event 1"
    assert span.parent is not None
    assert f"00-{span.context.trace_id:032x}-{span.parent.span_id:016x}-01" == PARENT
    assert first[36:52] == f"{span.context.span_id:016x}"
    assert second == PARENT


async def test_what_is_published_again_by_another_relay_has_the_same_span(
    spans: InMemorySpanExporter,
) -> None:
    """The first one is lost when a relay is killed; workers have its record."""
    first = await publish(a_row(1))
    spans.clear()

    assert await publish(a_row(1)) == first


@pytest.mark.parametrize("error", [KafkaConnectionError("away"), RuntimeError("a fault")])
async def test_what_is_not_published_has_no_span_yet(
    spans: InMemorySpanExporter, error: Exception
) -> None:
    with pytest.raises(type(error)):
        await publish(a_row(1), error=error)

    assert find_sends(spans) == {}
    [batch] = spans.get_finished_spans()
    assert (batch.attributes or {})[telemetry.ERROR_TYPE] == type(error).__name__


async def test_only_what_was_acknowledged_has_its_span(spans: InMemorySpanExporter) -> None:
    error = NotAcknowledged({("counters.v1", 1): RequestTimedOutError()}, [])

    with pytest.raises(NotAcknowledged):
        await publish(a_row(1, partition=0), a_row(2, partition=1), error=error)

    assert [*find_sends(spans)] == ["event 1"]


async def test_without_a_recorded_trace_no_span_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer = Mock()
    monkeypatch.setattr(telemetry, "tracer", tracer)

    await publish(a_row(1, traceparent=None))

    assert tracer.method_calls == []
