"""A line of the log is one outcome: JSON for programs, text for people, without personal data."""

import asyncio
import gc
import json
import logging
from uuid import UUID

import asyncpg
import pytest
from aiokafka.errors import KafkaConnectionError
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from shared.runtime import log_lines, logs, telemetry
from shared.runtime.logs import because
from test_support.written_log import written_log

log = logging.getLogger("notes")

SECRET = "Elm Street 7"


def fail() -> None:
    try:
        raise KeyError(SECRET)
    except KeyError as error:
        raise ValueError(f"no number in {SECRET}") from error


def log_failure() -> None:
    try:
        fail()
    except ValueError:
        log.exception("it cannot be taken")


def test_a_line_is_json_with_its_fields() -> None:
    with written_log() as written:
        log.info("recorded %d", 2, extra={"stream_id": UUID(int=7), "version": 2, "none": None})

    [line] = written.lines
    assert line.pop("time").endswith("Z")
    assert line == {
        "message": "recorded 2",
        "level": "info",
        "logger": "notes",
        "stream_id": str(UUID(int=7)),
        "version": 2,
    }


def test_each_outcome_of_a_batch_is_a_line_with_what_all_have_in_common() -> None:
    with written_log() as written:
        each = [{"stream_id": "a"}, {"stream_id": "b", "trace_id": "t"}]
        log.info("consumed", extra={"seconds": 0.5, logs.EACH: each})

    assert [line["stream_id"] for line in written.lines] == ["a", "b"]
    assert [line.get("trace_id") for line in written.lines] == [None, "t"]
    assert {line["seconds"] for line in written.lines} == {0.5}
    assert all(logs.EACH not in line for line in written.lines)


@pytest.mark.parametrize(
    "value", ["\udc80", b"\xff", float("nan"), object(), {1: {2}}, "a\nb", "a\u2028b", "ä\x85"]
)
def test_whatever_a_field_holds_is_one_line_of_json(value: object) -> None:
    with written_log() as written:
        log.info("odd", extra={"field": value})

    [line] = written.lines
    assert "field" in line


def test_a_line_names_the_span_that_it_is_written_in_if_that_is_recorded(
    spans: InMemorySpanExporter,
) -> None:
    with written_log() as written:
        with telemetry.tracer.start_as_current_span("a") as span:
            log.info("inside")
        log.info("outside")

    inside, outside = written.lines
    context = span.get_span_context()
    assert inside["trace_id"] == f"{context.trace_id:032x}"
    assert inside["span_id"] == f"{context.span_id:016x}"
    assert {"trace_id", "span_id"}.isdisjoint(outside)


def test_an_unexpected_error_is_its_class_and_place_and_not_its_text() -> None:
    with written_log() as written:
        log_failure()

    [line] = written.lines
    assert SECRET not in written.getvalue()
    assert line["exception"].endswith("ValueError\n")
    assert "KeyError\n" in line["exception"], "the cause"
    assert 'raise ValueError(f"no number in {SECRET}") from error' in line["exception"]


def test_errors_of_a_group_are_shown_each_and_without_text() -> None:
    with written_log() as written:
        try:
            raise ExceptionGroup(SECRET, [ValueError(SECRET), KeyError(SECRET)])
        except ExceptionGroup:
            log.exception("both failed")

    [line] = written.lines
    assert SECRET not in written.getvalue()
    assert {"ExceptionGroup", "ValueError", "KeyError"} <= set(line["exception"].splitlines())


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ValueError(SECRET), "ValueError"),
        (KeyError(SECRET), "KeyError"),
        (asyncpg.UniqueViolationError(f"row {SECRET}"), "UniqueViolationError"),
        (UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET), "UnicodeDecodeError"),
        (asyncpg.AdminShutdownError(f"bye\nDETAIL: {SECRET}"), "AdminShutdownError: bye"),
        (ConnectionRefusedError(111, "refused"), "ConnectionRefusedError: [Errno 111] refused"),
        (
            KafkaConnectionError("no broker"),
            "KafkaConnectionError: no broker",
        ),
        (asyncpg.InterfaceError("pool is closed"), "InterfaceError: pool is closed"),
        (asyncpg.exceptions._base.DataError(f"invalid input {SECRET}"), "DataError"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_only_the_text_of_an_error_of_a_server_is_shown(error: Exception, name: str) -> None:
    assert logs.name_error(error) == name
    assert because(error) == {"cause": type(error).__name__, "error": name}


def test_the_cause_of_a_group_is_its_first_error() -> None:
    inner = ExceptionGroup("inner", [OSError("refused"), ValueError()])

    assert because(ExceptionGroup("outer", [inner]))["cause"] == "OSError"


@pytest.mark.parametrize("form", ["%s", "%r"])
def test_an_error_in_a_message_of_a_library_is_named(form: str) -> None:
    with written_log() as written:
        log.error(f"Crashed reason={form}", ValueError(SECRET))
        log.error(f"%(what)s {form[-1]}", {"what": "no tuple"})

    assert "Crashed reason=" in written.lines[0]["message"]
    assert "ValueError" in written.lines[0]["message"]
    assert SECRET not in written.getvalue()


def test_errors_that_cause_each_other_are_written_once() -> None:
    one, other = ValueError(), KeyError()
    one.__cause__, other.__cause__ = other, one

    with written_log() as written:
        log.error("odd", exc_info=one)

    assert written.lines[0]["exception"].count("ValueError") == 1


def test_a_line_that_cannot_be_formatted_names_its_logger_alone() -> None:
    with written_log() as written:
        [handler] = [
            each for each in logging.getLogger().handlers if isinstance(each, logs.Handler)
        ]
        handler.handle(logging.makeLogRecord({"name": "notes", "msg": "%d", "args": (SECRET,)}))

    [line] = written.lines
    assert line["message"] == "a line of notes cannot be written"


async def test_an_error_that_no_task_expects_is_a_line_without_its_text() -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(logs.log_unhandled)
    with written_log() as written:
        task = loop.create_task(asyncio.to_thread(fail))
        await asyncio.wait([task])
        del task
        gc.collect()
        await asyncio.sleep(0)

    [line] = written.lines
    assert line["message"] == "Task exception was never retrieved"
    assert "ValueError" in line["exception"]
    assert SECRET not in written.getvalue()


def test_debugging_shows_the_text_of_an_error() -> None:
    with written_log(log_level="DEBUG") as written:
        log_failure()

    assert f"ValueError: no number in {SECRET}" in written.lines[0]["exception"]


def test_a_terminal_gets_text() -> None:
    with written_log(is_terminal=True) as written:
        log.warning("parked", extra={"stream_id": "s"})
        log_failure()

    first, second, *exception = written.getvalue().splitlines()
    assert "\033[33mWARNING " in first
    assert "parked" in first
    assert "stream_id=s" in first
    assert "it cannot be taken" in second
    assert exception[-1] == "ValueError"


@pytest.mark.parametrize(
    ("is_terminal", "log_format", "is_json"), [(True, "json", True), (False, "text", False)]
)
def test_the_format_can_be_chosen(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, log_format: str, is_json: bool
) -> None:
    monkeypatch.setenv("LOG_FORMAT", log_format)
    with written_log(is_terminal=is_terminal) as written:
        log.info("a")

    assert written.getvalue().startswith("{") is is_json
    assert "\033" not in written.getvalue()


def test_the_level_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOG_LEVEL", "WARNING")
    with written_log() as written:
        log.info("a")
        log.warning("b")

    assert [line["message"] for line in written.lines] == ["b"]


def record_at(seconds: float, message: str, error: Exception, name: str = "notes") -> bool:
    """Whether a line that is logged at this time is written."""
    record = logging.makeLogRecord({"name": name, "msg": message, **because(error)})
    record.created = seconds
    return ONCE.filter(record)


ONCE = logs.OncePerMinute()


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ONCE", logs.OncePerMinute())


def test_what_is_unavailable_is_written_once_a_minute_for_each_cause() -> None:
    assert record_at(0, "no database", OSError("a"))
    assert not record_at(59, "no database", OSError("b"))
    assert record_at(59, "no database", TimeoutError())
    assert record_at(59, "no broker", OSError("a"))
    assert record_at(59, "no database", OSError("a"), name="others")
    assert record_at(60, "no database", OSError("a"))
    assert not record_at(119, "no database", OSError("a"))


def test_a_clock_that_is_put_back_silences_nothing() -> None:
    assert record_at(10_000, "no database", OSError())
    assert record_at(10, "no database", OSError())


def test_a_line_says_how_many_were_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    with written_log() as written:
        for _ in range(100):
            log.warning("no broker", extra=because(OSError("refused")))
        monkeypatch.setattr(logs, "REPEAT_SECONDS_MIN", 0)
        log.warning("no broker", extra=because(OSError("refused")))

    first, second = written.lines
    assert (first["cause"], first["error"]) == ("OSError", "OSError: refused")
    assert "repeats" not in first
    assert second["repeats"] == 99


def test_an_error_that_has_no_text_is_a_cause_as_well() -> None:
    """Some errors of libraries raise another one instead."""
    with written_log() as written:
        log.warning("no database", extra=because(asyncpg.CannotConnectNowError()))

    assert written.lines[0]["cause"] == "CannotConnectNowError"


@pytest.mark.parametrize("name", ["aiokafka", "asyncpg.pool", "faust", "httpx.client", "mode"])
def test_a_library_that_talks_a_lot_is_not_heard(name: str) -> None:
    with written_log() as written:
        logging.getLogger(name).info("a step of the start")

    assert written.lines == []


def test_outcomes_are_written_each() -> None:
    with written_log() as written:
        for _ in range(100):
            log.error("parked")

    assert len(written.lines) == 100


@pytest.mark.parametrize(
    "name", ["aiokafka", "aiokafka.consumer.fetcher", "opentelemetry.exporter.otlp"]
)
def test_a_library_that_repeats_itself_is_heard_once_a_minute(name: str) -> None:
    with written_log() as written:
        for number in range(100):
            logging.getLogger(name).warning("no broker at %d", number)
            logging.getLogger(name).warning("no topic %d", number)

    assert [line["message"] for line in written.lines] == ["no broker at 0", "no topic 0"]


def test_what_a_library_tries_again_is_no_error() -> None:
    library = logging.getLogger("aiokafka.consumer.group_coordinator")
    with written_log() as written:
        library.error("no coordinator yet")
        try:
            raise ValueError
        except ValueError:
            library.exception("the routine has ended")
        library.critical("given up")
        log.error("parked")
    with written_log(log_level="ERROR") as without_warnings:
        library.error("no coordinator yet")
        log.error("parked")

    assert [line["level"] for line in written.lines] == ["warning", "error", "critical", "error"]
    assert [line["message"] for line in without_warnings.lines] == ["parked"]


def test_json_becomes_text_and_other_lines_are_no_lines_of_ours() -> None:
    text = '{"message": "parked", "time": "2026-01-01T00:00:00Z", "level": "error", "n": 1}'
    line = log_lines.parse(text)

    assert line is not None
    assert log_lines.to_text(line, colors=False) == "2026-01-01T00:00:00Z ERROR    parked n=1"
    for other in ("plain", "{not json", '{"a": 1}', "", "[1]"):
        assert log_lines.parse(other) is None
    assert json.loads(logs.dump(line)) == line
