"""A line of the log is one outcome: JSON for programs, text for people."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from shared.runtime import logs, telemetry
from shared.runtime.settings import LogSettings


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What `configure` changes belongs to a process for its whole life."""
    for name in ("_srcfile", "logThreads", "logProcesses", "logMultiprocessing"):
        monkeypatch.setattr(logging, name, getattr(logging, name))
    names = ("", *logs.TALKATIVE, *logs.REPEATING, *logs.NOISY)
    loggers = [logging.getLogger(name) for name in names]
    before = [(each, each.level, each.filters[:], each.handlers[:]) for each in loggers]
    yield
    for logger, level, filters, handlers in before:
        logger.setLevel(level)
        logger.filters[:], logger.handlers[:] = filters, handlers


def test_a_line_is_json_with_its_fields() -> None:
    stream = io.StringIO()
    logs.configure(LogSettings(), stream)

    logging.getLogger("notes").info("recorded %d", 2, extra={"stream_id": "s", "version": 2})

    line = json.loads(stream.getvalue())
    assert line.pop("time").endswith("Z")
    assert line == {
        "message": "recorded 2",
        "level": "info",
        "logger": "notes",
        "stream_id": "s",
        "version": 2,
    }


def test_a_record_of_several_lines_is_written_at_once() -> None:
    stream = io.StringIO()
    logs.configure(LogSettings(), stream)

    each = [{"stream_id": "a"}, {"stream_id": "b", "trace_id": "t"}]
    logging.getLogger("notes").info("decided", extra={"batch": 7, logs.EACH: each})

    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["message"], line["stream_id"]) for line in lines] == [
        ("decided", "a"),
        ("decided", "b"),
    ]
    assert [line.get("trace_id") for line in lines] == [None, "t"]
    assert {line["batch"] for line in lines} == {7}
    assert all(logs.EACH not in line for line in lines)


def test_an_exception_is_in_the_same_line() -> None:
    stream = io.StringIO()
    logs.configure(LogSettings(), stream)

    try:
        raise ValueError("no number")
    except ValueError:
        logging.getLogger("notes").exception("cannot")

    [line] = stream.getvalue().splitlines()
    assert json.loads(line)["exception"].endswith("ValueError: no number")


def test_a_line_names_the_current_trace_if_it_is_recorded(spans: InMemorySpanExporter) -> None:
    stream = io.StringIO()
    logs.configure(LogSettings(), stream)

    with telemetry.tracer.start_as_current_span("a") as span:
        logging.getLogger("notes").info("inside")
    logging.getLogger("notes").info("outside")

    inside, outside = map(json.loads, stream.getvalue().splitlines())
    assert inside["trace_id"] == telemetry.trace_id_of(span)
    assert "trace_id" not in outside


def test_a_terminal_gets_text() -> None:
    stream = Terminal()
    logs.configure(LogSettings(), stream)

    logging.getLogger("notes").warning("parked", extra={"stream_id": "s"})

    assert "parked" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


@pytest.mark.parametrize(("log_format", "is_json"), [("json", True), ("text", False)])
def test_the_format_can_be_chosen(
    monkeypatch: pytest.MonkeyPatch, log_format: str, is_json: bool
) -> None:
    monkeypatch.setenv("LOG_FORMAT", log_format)
    stream = Terminal() if is_json else io.StringIO()
    logs.configure(LogSettings(), stream)

    logging.getLogger("notes").info("a")

    assert stream.getvalue().startswith("{") is is_json


def test_the_level_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOG_LEVEL", "WARNING")
    stream = io.StringIO()
    logs.configure(LogSettings(), stream)

    logging.getLogger("notes").info("a")
    logging.getLogger("notes").warning("b")

    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["b"]


def test_a_library_that_repeats_itself_is_heard_once_a_minute() -> None:
    stream = io.StringIO()
    logs.configure(LogSettings(), stream)

    for _ in range(100):
        logging.getLogger("aiokafka.conn").warning("no broker")

    assert len(stream.getvalue().splitlines()) == 1


def test_json_becomes_text_and_other_lines_stay() -> None:
    line = '{"message": "parked", "time": "2026-01-01T00:00:00Z", "level": "error", "n": 1}'

    text = logs.to_text(line, colors=False)

    assert text.startswith("2026-01-01T00:00:00Z [error")
    assert text.endswith("parked n=1")
    for other in ("plain", "{not json", '{"a": 1}', ""):
        assert logs.to_text(other, colors=False) == other
