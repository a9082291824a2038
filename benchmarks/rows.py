"""One realistic event, as every measurement stores and sends it: 300 bytes and 13 headers."""

import asyncpg

from benchmarks.servers import PARTITIONS
from shared.messaging import messages, wire
from shared.runtime import telemetry

VALUE_BYTES = 300
EVENT_ID = "0194f3a2-7c1e-7b52-9d4e-5a1f0c6b8e21"
EVENT_TYPE = "order-placed"
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

HEADERS = {
    messages.ID: EVENT_ID,
    messages.TYPE: EVENT_TYPE,
    messages.SOURCE: "orders-svc",
    messages.TIME: "2026-01-01T12:00:00.000000Z",
    messages.SPEC: messages.SPEC_VERSION,
    messages.SUBJECT: EVENT_ID,
    messages.SCHEMA_VERSION: "1",
    messages.STREAM_ID: EVENT_ID,
    messages.STREAM_VERSION: "1",
    messages.CORRELATION_ID: EVENT_ID,
    messages.CAUSATION_ID: EVENT_ID,
    messages.CONTENT: messages.CONTENT_TYPE,
}
"""What the event store writes; `append` adds the previous version, the thirteenth."""
RECORD_HEADERS = wire.to_headers(HEADERS | {messages.PREVIOUS_VERSION: "0"})

METADATA = f'{{"correlation_id": "{EVENT_ID}", "causation_id": "{EVENT_ID}"}}'


def create_value(instant: str) -> str:
    """A JSON object of VALUE_BYTES that begins with an instant, in seconds with 17 digits."""
    begin, end = f'{{"at": {instant}, "note": "', '"}'
    return begin + create_filler(VALUE_BYTES - len(begin) - len(end)) + end


def create_filler(length: int) -> str:
    """Text of this length that is not one repeated letter."""
    words = "one event of a stream, recorded because it has happened; "
    return (words * (length // len(words) + 1))[:length]


INSTANT = "1767268800.000000"
AT = slice(len('{"at": '), len('{"at": ') + len(INSTANT))
"""The position of the instant in a value."""

VALUE = create_value(INSTANT)


def read_instant(value: bytes) -> float:
    """The instant in a value that `create_value` or VALUE_NOW made, in seconds since 1970."""
    return float(value[AT])


def literal(text: str) -> str:
    """A text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def bytes_literal(content: bytes) -> str:
    """Bytes as SQL."""
    return f"'\\x{content.hex()}'::bytea"


# The instant is taken by the server before it inserts anything.
VALUE_NOW = f"""convert_to({literal(VALUE[: AT.start])}
    || extract(epoch FROM clock_timestamp()) || {literal(VALUE[AT.stop :])}, 'UTF8')"""
VALUE_CONSTANT = f"convert_to({literal(VALUE)}, 'UTF8')"

NO_ANSWER = "NULL"
STORED_ANSWER = f"""
    ROW('bench', gen_random_uuid()::text, '\\x00'::bytea, 201::smallint, '{{}}'::json,
        {VALUE_CONSTANT})::stored_answer"""


def append(topic: str, *, value: str = VALUE_CONSTANT, answer: str = NO_ANSWER) -> str:
    """SQL that appends one event to a stream of its own, as the event store does."""
    return f"""
        SELECT try_append(
            uuidv7(), 'bench', 0,
            ARRAY[ROW(
                uuidv7(), {literal(EVENT_TYPE)}, 1::smallint, {literal(VALUE)}::json,
                {literal(topic)}, (random() * {PARTITIONS - 1})::smallint,
                convert_to({literal(EVENT_ID)}, 'UTF8'), {value},
                {bytes_literal(wire.pack(wire.to_headers(HEADERS), to_follow=1))}, NULL
            )::new_event],
            {literal(METADATA)}::json, clock_timestamp(), {answer});
    """


ROWS_PER_COMMIT = 100


async def fill(
    connection: asyncpg.Connection, topic: str, rows: int, *, traceparent: str | None = None
) -> None:
    """Fill an outbox as many small transactions would have."""
    headers = list(RECORD_HEADERS)
    if traceparent:
        headers.append((telemetry.TRACEPARENT, traceparent.encode()))
    await connection.execute("SET synchronous_commit = off")
    await connection.execute(f"""
        DO $$
        BEGIN
            FOR start IN 1..{rows} BY {ROWS_PER_COMMIT} LOOP
                INSERT INTO outbox
                    (topic, partition, key, value, headers, traceparent, recorded_at)
                SELECT {literal(topic)}, number % {PARTITIONS},
                       convert_to(gen_random_uuid()::text, 'UTF8'), {VALUE_CONSTANT},
                       {bytes_literal(wire.pack(headers))},
                       {literal(traceparent) if traceparent else "NULL"}, now()
                FROM generate_series(start, least(start + {ROWS_PER_COMMIT - 1}, {rows})) AS number;
                COMMIT;
            END LOOP;
        END
        $$
    """)
