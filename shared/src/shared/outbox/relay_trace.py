"""The spans of a relayed batch: one trace for the batch, and one span in the trace of each row."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Link, Span, SpanKind

from shared.messaging import kafka, messages, wire
from shared.messaging.kafka import NotAcknowledged
from shared.messaging.wire import OutgoingRecord, RecordBatch, Target
from shared.outbox.outbox import OutboxRow
from shared.runtime import telemetry


class SampledSend(NamedTuple):
    """The span of a row whose trace is recorded, and its record, which names that span."""

    span: Span
    record: OutgoingRecord


class BatchTrace:
    """The spans of one batch: its own, and one `send` in the trace of each sampled row.

    Many rows have many parents, so the batch is a trace of its own that links to them; the record
    carries the context of its `send` span, so that the consumer continues the row's trace.
    `batches` is what was made of them, once acknowledged. Without a sampled row there is no span.

    What is not acknowledged is sent again, with the same span: its first one is not exported. Nor
    does it leave a gap if this process is killed.
    """

    def __init__(self, rows: Sequence[OutboxRow]) -> None:
        sampled = [(row, row.traceparent) for row in rows if row.traceparent is not None]
        self._batch = start_batch(len(rows), [parent for _, parent in sampled])
        self._sampled = {row.position: self._begin_send(row, parent) for row, parent in sampled}
        self._rows = rows
        self.batches: Sequence[RecordBatch] = ()

    @property
    def is_recorded(self) -> bool:
        """Whether the trace of a row is."""
        return bool(self._sampled)

    def records(self) -> Iterator[OutgoingRecord]:
        """The rows as they go out; a sampled one names its `send` span as the parent."""
        for row in self._rows:
            sampled = self._sampled.get(row.position)
            yield sampled.record if sampled else row.record

    def _begin_send(self, row: OutboxRow, parent: str) -> SampledSend:
        headers = dict(wire.unpack(row.headers))
        event_id = headers[messages.ID].decode()
        span = telemetry.start_span_of(
            event_id,
            f"send {row.topic}",
            context=telemetry.extract({telemetry.TRACEPARENT: parent}),
            kind=SpanKind.PRODUCER,
            links=[Link(self._batch.get_span_context())],
            attributes={
                telemetry.MESSAGING_SYSTEM: "kafka",
                telemetry.MESSAGING_OPERATION_NAME: "send",
                telemetry.MESSAGING_OPERATION_TYPE: "send",
                telemetry.MESSAGING_DESTINATION: row.topic,
                telemetry.MESSAGING_PARTITION: str(row.partition),
                telemetry.MESSAGING_KEY: row.key.decode(),
                telemetry.MESSAGING_MESSAGE_ID: event_id,
                telemetry.EVENT_TYPE: headers[messages.TYPE].decode(),
            },
        )
        headers[telemetry.TRACEPARENT] = telemetry.traceparent_of(span).encode()
        packed = wire.pack(list(headers.items()))
        return SampledSend(span, row.record._replace(headers=packed))

    async def __aenter__(self) -> "BatchTrace":
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if self._sampled:
            # In a thread: the end of a span can wait for room, and the lease has to be renewed.
            await asyncio.to_thread(self._end, error)

    def _end(self, error: BaseException | None) -> None:
        if self.batches:
            targets = ((row.topic, row.partition) for row in self._rows)
            offsets = kafka.iterate_offsets(self.batches, targets)
            for row, offset in zip(self._rows, offsets, strict=True):
                if sampled := self._sampled.get(row.position):
                    sampled.span.set_attribute(telemetry.MESSAGING_OFFSET, offset)
        for sampled in self._sampled.values():
            if is_acknowledged(sampled.record.target, error):
                sampled.span.end()
        if error is not None:
            telemetry.fail(self._batch, type(error).__qualname__)
        self._batch.end()


def start_batch(rows: int, parents: Sequence[str]) -> Span:
    """Start the span of a batch; of one without sampled rows, one that records nothing."""
    if not parents:
        return INVALID_SPAN
    return telemetry.tracer.start_span(
        "relay batch",
        context=Context(),
        kind=SpanKind.CLIENT,
        links=[telemetry.link_to(parent) for parent in parents[: telemetry.LINKS_MAX]],
        attributes={
            telemetry.MESSAGING_SYSTEM: "kafka",
            telemetry.MESSAGING_OPERATION_NAME: "send",
            telemetry.MESSAGING_OPERATION_TYPE: "send",
            telemetry.MESSAGING_BATCH_COUNT: rows,
        },
    )


def is_acknowledged(target: Target, error: BaseException | None) -> bool:
    """Whether a partition has taken its records, by the error with which publishing ended."""
    if isinstance(error, NotAcknowledged):
        return target not in error.errors
    return error is None
