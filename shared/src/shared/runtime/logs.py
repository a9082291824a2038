"""Logs of a process: a line for each outcome, as JSON, or as text for a terminal.

A line has a message that is the same each time, and names what it is about in fields: stream_id,
event_id, and the trace_id where the trace is recorded. No field holds personal data.
"""

import json
import logging
import sys
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any, TextIO

from opentelemetry import trace
from structlog.dev import ConsoleRenderer

from shared.runtime import telemetry
from shared.runtime.settings import LogSettings

MESSAGE, TIME, LEVEL, LOGGER = "message", "time", "level", "logger"
"""The fields of every line."""
TRACE_ID = "trace_id"
EACH = "each"
"""In `extra`: the fields of several lines that are equal in all else, and are written at once."""

NOT_FIELDS = {*vars(logging.makeLogRecord({})), "message", "taskName", "color_message"}
"""Attributes of a record that its caller did not add; the last one is uvicorn's."""

TALKATIVE = ("faust", "mode", "aiokafka")
"""These log each step of a start."""

REPEATING = ("asyncpg.pool",)
"""These log each retry of a connection with a stack trace; its users report the outage once."""

NOISY = (
    "aiokafka",
    "aiokafka.conn",
    "aiokafka.client",
    "aiokafka.producer.sender",
    "aiokafka.consumer.group_coordinator",
    "aiokafka.cluster",
)
"""These log a line per retry while a broker is unavailable; one a minute is enough."""


def configure(settings: LogSettings, stream: TextIO = sys.stderr) -> None:
    """Log to `stream`: as text if it is a terminal, unless the settings name a format."""
    is_text = settings.log_format == "text" or (settings.log_format == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(create_formatter(is_text=is_text, colors=is_text and stream.isatty()))
    # No line names the code that wrote it, or its thread: looking them up is half of a record's
    # cost (https://docs.python.org/3/howto/logging.html#optimization).
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(settings.log_level)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in REPEATING:
        logging.getLogger(name).setLevel(logging.ERROR)
    for name in NOISY:
        logging.getLogger(name).addFilter(telemetry.OncePerMinute())


class Formatter(logging.Formatter):
    """Writes each record as one line of its fields; an exception is one of them.

    structlog's formatter for records of `logging` takes twice as long, and a line is the largest
    part of what it costs to observe a request.
    """

    def __init__(self, write: Callable[[MutableMapping[str, Any]], str]) -> None:
        super().__init__()
        self._write = write

    def format(self, record: logging.LogRecord) -> str:
        written = datetime.fromtimestamp(record.created, UTC).replace(tzinfo=None)
        line: dict[str, Any] = {
            TIME: f"{written.isoformat(timespec='microseconds')}Z",
            LEVEL: record.levelname.lower(),
            LOGGER: record.name,
        }
        line |= {name: value for name, value in vars(record).items() if name not in NOT_FIELDS}
        if TRACE_ID not in line and (found := telemetry.trace_id_of(trace.get_current_span())):
            line[TRACE_ID] = found
        line[MESSAGE] = record.getMessage()
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if EACH in line:
            return "\n".join(self._write(line | fields) for fields in line.pop(EACH))
        return self._write(line)


def create_formatter(*, is_text: bool, colors: bool = False) -> logging.Formatter:
    """Of JSON, or of text for people."""
    if not is_text:
        return Formatter(json.JSONEncoder(ensure_ascii=False, default=repr).encode)
    console = create_console(colors=colors)
    return Formatter(lambda line: str(console(None, "", line)))


def create_console(*, colors: bool) -> ConsoleRenderer:
    return ConsoleRenderer(colors=colors, event_key=MESSAGE, timestamp_key=TIME, pad_event_to=0)


def to_text(line: str, *, colors: bool) -> str:
    """A line of JSON as text for people; any other line as it is."""
    try:
        fields: MutableMapping[str, Any] = json.loads(line) if line.startswith("{") else {}
    except ValueError:
        return line
    if MESSAGE not in fields or TIME not in fields:
        return line
    return str(create_console(colors=colors)(None, "", dict(fields)))
