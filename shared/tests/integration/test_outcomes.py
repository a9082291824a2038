"""What is logged is what was committed, with the ids that find it again, and no personal data."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from shared.eventsourcing.event_store import EventStore
from shared.inbox import dead_letters
from shared.runtime.identifiers import new_id
from test_support.counter.counted_records import record, records
from test_support.counter.counter import TOPIC, Counted, counted, some_metadata
from test_support.counter.desk import NAME, Desk
from test_support.written_log import WrittenLog, written_log

SECRET = "Elm Street 7"


@pytest.fixture
def written() -> Iterator[WrittenLog]:
    with written_log() as log:
        yield log


async def test_a_message_is_a_line_and_so_is_each_event_that_was_recorded_because_of_it(
    desk: Desk, written: WrittenLog
) -> None:
    counter = new_id()
    first, second = records(counter, 1, 2)

    await desk.consumer.take([first, second, second])

    consumed = written.find("consumed")
    assert [(each["stream_version"], each["outcome"]) for each in consumed] == [
        (1, "applied"),
        (2, "applied"),
        (2, "repeated"),
    ]
    assert consumed[0] == consumed[0] | {
        "consumer": NAME,
        "topic": first.topic,
        "partition": first.partition,
        "offset": first.offset,
        "event_type": "counted",
        "stream_id": str(counter),
    }
    assert consumed[0]["seconds"] > 0
    recorded = written.find("recorded")
    assert [each["correlation_id"] for each in recorded] == [
        each["correlation_id"] for each in consumed[:2]
    ]
    assert {each["consumer"] for each in recorded} == {NAME}


async def test_an_attempt_that_is_rolled_back_is_no_outcome(
    desk: Desk, written: WrittenLog
) -> None:
    desk.errors = [ConnectionError("unavailable"), ConnectionError("still")]

    await desk.consumer.take(records(new_id(), 1))

    assert desk.attempts == 3
    assert len(written.find("consumed")) == len(written.find("recorded")) == 1
    assert len([line for line in written.lines if line.get("cause") == "ConnectionError"]) == 1


REFUSE_TWO_COMMITS = """
    CREATE SEQUENCE commits;
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF nextval('commits') <= 2 THEN
            RAISE EXCEPTION 'not now' USING ERRCODE = 'serialization_failure';
        END IF;
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON effects
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse();
"""


async def test_what_cannot_be_committed_is_no_outcome(desk: Desk, written: WrittenLog) -> None:
    await desk.pool.execute(REFUSE_TWO_COMMITS)
    holed, whole = new_id(), new_id()

    await desk.consumer.take([*records(whole, 1), record(holed, 2, previous=1)])

    assert desk.attempts == 3
    assert [each["outcome"] for each in written.find("consumed")] == ["applied", "parked"]
    assert len(written.find("recorded")) == 1
    assert len([line for line in written.lines if "is parked" in line["message"]]) == 1


async def test_a_poison_message_is_named_without_what_it_says(
    desk: Desk, written: WrittenLog
) -> None:
    sick = new_id()
    desk.poison = {sick}
    desk.complaint = SECRET

    await desk.consumer.take([record(sick, 1), record(sick, 2)])

    assert [(line["level"], line["message"]) for line in written.lines] == [
        ("error", "a message cannot be taken"),
        ("error", "a record is a dead letter: ValueError"),
        ("error", "the stream is parked: ValueError"),
        ("info", "consumed"),
    ]
    assert SECRET not in written.getvalue()
    about_it = [line for line in written.lines if line["level"] == "error"]
    assert {line["stream_id"] for line in about_it} == {str(sick)}, "it is found by its stream"
    [letter] = desk.letters
    assert dead_letters.REASON.encode() in letter.headers, "only the letter has the reason"
    assert SECRET.encode() in letter.headers


async def test_a_malformed_record_is_named_without_what_it_says(
    desk: Desk, written: WrittenLog
) -> None:
    good = record(new_id(), 1)
    headers = [(name, value) for name, value in good.headers if name != "ce_time"]
    await desk.consumer.take([replace(good, headers=[*headers, ("ce_time", SECRET.encode())])])

    [line] = written.find("a record is a dead letter: malformed")
    assert (line["topic"], line["offset"]) == (good.topic, good.offset)
    assert SECRET not in written.getvalue()


async def test_what_a_request_records_is_a_line(
    store: EventStore[Counted], written: WrittenLog
) -> None:
    counter, metadata = new_id(), some_metadata()

    await store.append(counter, 0, counted(counter, 1, 2), metadata=metadata)

    events = await store.read(counter)
    lines = written.find("recorded")
    assert [(each["event_id"], each["stream_version"]) for each in lines] == [
        (str(each.event_id), each.version) for each in events
    ]
    assert {each["correlation_id"] for each in lines} == {str(metadata.correlation_id)}


async def test_what_a_caller_can_still_roll_back_is_no_line(
    store: EventStore[Counted], written: WrittenLog, desk: Desk
) -> None:
    counter = new_id()

    async with desk.pool.acquire() as connection, connection.transaction():
        await store.within(connection).append(
            counter, 0, counted(counter, 1), metadata=some_metadata()
        )

    assert written.find("recorded") == []


async def test_a_recorded_trace_is_named_by_the_span_of_the_outcome(
    desk: Desk, written: WrittenLog, spans: InMemorySpanExporter
) -> None:
    await desk.consumer.take(records(new_id(), 1))

    [span] = spans.get_finished_spans()
    [line] = written.find("consumed")
    assert span.name == f"process {TOPIC}"
    assert line["trace_id"] == f"{span.context.trace_id:032x}"
    assert line["span_id"] == f"{span.context.span_id:016x}"


@pytest.mark.usefixtures("spans")
async def test_a_message_that_is_not_processed_is_named_by_the_span_of_its_record(
    desk: Desk, written: WrittenLog
) -> None:
    trace_id, span_id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    headers = [("traceparent", f"00-{trace_id}-{span_id}-01".encode())]
    early = record(new_id(), 3)

    await desk.consumer.take([replace(early, headers=[*early.headers, *headers])])

    [consumed] = written.find("consumed")
    assert (consumed["trace_id"], consumed["span_id"]) == (trace_id, span_id)
