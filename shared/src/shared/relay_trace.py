"""The spans of a relayed batch: one trace for the batch, and one span in the trace of each row."""

from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind

from shared import kafka, messages, telemetry
from shared.outbox import OutboxRow


class BatchTrace:
    """The spans of one batch: its own, and one `send` in the trace of each sampled row.

    Many rows have many parents, so the batch is a trace of its own that links to them; the record
    carries the context of its `send` span, so that the consumer continues the row's trace.
    """

    def __init__(self, rows: Sequence[OutboxRow]) -> None:
        sampled = [
            row.headers[telemetry.TRACEPARENT]
            for row in rows
            if telemetry.is_sampled(row.headers.get(telemetry.TRACEPARENT))
        ]
        self._batch = telemetry.tracer.start_span(
            "relay batch",
            context=Context(),
            kind=SpanKind.CLIENT,
            links=[telemetry.link_to(parent) for parent in sampled[: telemetry.LINKS_MAX]],
            attributes={
                telemetry.MESSAGING_SYSTEM: "kafka",
                telemetry.MESSAGING_OPERATION_NAME: "send",
                telemetry.MESSAGING_OPERATION_TYPE: "send",
                telemetry.MESSAGING_BATCH_COUNT: len(rows),
            },
        )
        self._spans = [self._send_span(row) for row in rows]
        self.records = [record_of(row, span) for row, span in zip(rows, self._spans, strict=True)]
        self.offsets: list[int] = []

    def _send_span(self, row: OutboxRow) -> Span | None:
        parent = row.headers.get(telemetry.TRACEPARENT)
        if not telemetry.is_sampled(parent):
            return None
        return telemetry.tracer.start_span(
            f"send {row.topic}",
            context=telemetry.extract(row.headers),
            kind=SpanKind.PRODUCER,
            links=[Link(self._batch.get_span_context())],
            attributes={
                telemetry.MESSAGING_SYSTEM: "kafka",
                telemetry.MESSAGING_OPERATION_NAME: "send",
                telemetry.MESSAGING_OPERATION_TYPE: "send",
                telemetry.MESSAGING_DESTINATION: row.topic,
                telemetry.MESSAGING_PARTITION: str(row.partition),
                telemetry.MESSAGING_KEY: row.key.decode(),
                telemetry.MESSAGING_MESSAGE_ID: row.headers[messages.ID],
                telemetry.EVENT_TYPE: row.headers[messages.TYPE],
            },
        )

    def __enter__(self) -> "BatchTrace":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        for index, span in enumerate(self._spans):
            if span is None:
                continue
            if error is not None:
                span.record_exception(error)
            elif self.offsets:
                span.set_attribute(telemetry.MESSAGING_OFFSET, self.offsets[index])
            span.end()
        self._batch.end()


def record_of(row: OutboxRow, span: Span | None) -> kafka.OutgoingRecord:
    """The record of a row, with exactly one traceparent: the send span's, else the row's own."""
    headers = row.headers
    if span is not None:
        headers = headers | {telemetry.TRACEPARENT: telemetry.traceparent_of(span)}
    return kafka.OutgoingRecord(
        topic=row.topic,
        partition=row.partition,
        key=row.key,
        value=row.value,
        headers=[(name, value.encode()) for name, value in headers.items()],
        timestamp=row.recorded_at,
    )
