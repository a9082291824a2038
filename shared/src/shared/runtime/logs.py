"""Writing the log of a process: lines of JSON for programs, of text for a terminal.

A message is the same each time, and fields name what it is about: `log.info("recorded",
extra={"stream_id": ...})`. No line quotes what people have entered. Of an error, its class and the
lines of code are written; its text only if that is about a server, which is unavailable.
"""

import asyncio
import json
import logging
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from math import inf
from threading import Lock
from typing import Any, TextIO

import asyncpg
import httpx
from aiokafka.errors import KafkaError
from opentelemetry import trace
from pydantic_core import to_json

from shared.runtime import telemetry
from shared.runtime.log_lines import EXCEPTION, LEVEL, LOGGER, MESSAGE, TIME, to_text
from shared.runtime.settings import LogSettings

CAUSE = "cause"
"""In `extra`: what lines that come again and again are about; each is written once a minute."""
EACH = "each"
"""In `extra`: what differs in several lines that are written at once, as an outcome of a batch is:
what they have in common is the greater part of what a line costs."""

NOT_FIELDS = {*vars(logging.makeLogRecord({})), MESSAGE, "taskName", "color_message", EACH}
"""Attributes of a record that are no fields of a line; `color_message` is uvicorn's."""

REPEAT_SECONDS_MIN = 60.0
"""Between two lines with one cause."""
ERROR_CHARACTERS_MAX = 500

TALKATIVE = ("faust", "mode", "aiokafka", "httpx")
"""Loggers of libraries that log each step of a start, or each request."""

REPEATING = ("asyncpg.pool",)
"""These log each retry of a connection with a stack trace; its users report the outage once."""

NOISY = frozenset({"aiokafka", "faust", "mode", "opentelemetry"})
"""Libraries that log each attempt while a server is unavailable, or each header that is malformed:
each of their messages is one cause, whatever it is filled with."""

OF_SERVERS = (OSError, KafkaError, asyncpg.InterfaceError, httpx.HTTPError)
"""Errors whose texts are about a server or a connection; so are those with an SQLSTATE, but for the
classes OF_VALUES."""
OF_VALUES = ("22", "23")
"""Data exceptions and violated constraints, which can quote a row
(https://www.postgresql.org/docs/current/errcodes-appendix.html)."""

HEADING = "Traceback (most recent call last):\n"

log = logging.getLogger(__name__)

Describe = Callable[[BaseException], str]


def configure(settings: LogSettings, stream: TextIO | None = None) -> None:
    """Log to `stream`, standard error by default: as text if it is a terminal, unless the settings
    name a format. Like `logging.basicConfig`, it leaves handlers alone that are there already."""
    root = logging.getLogger()
    if root.handlers:
        return
    stream = stream or sys.stderr
    is_text = settings.log_format == "text" or (settings.log_format == "auto" and stream.isatty())
    handler = Handler(stream)
    handler.setFormatter(create_formatter(settings, is_text=is_text, colors=stream.isatty()))
    handler.addFilter(lower_failed_attempt)
    handler.addFilter(OncePerMinute())
    # No line names a thread, a process or the code that wrote it: to find them out is a quarter of
    # what a line costs (https://docs.python.org/3/howto/logging.html#optimization).
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None
    root.addHandler(handler)
    root.setLevel(settings.log_level)
    for names, level in ((TALKATIVE, logging.WARNING), (REPEATING, logging.ERROR)):
        for name in names:
            logging.getLogger(name).setLevel(max(level, root.level))


def because(error: BaseException) -> dict[str, str]:
    """Make the `extra` of a line about what is unavailable; of a group, its first error counts."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return {CAUSE: type(error).__name__, "error": name_error(error)}


def name_error(error: BaseException) -> str:
    """Name an error by its class, and by the first line of its text if that is about a server."""
    kind, sqlstate = type(error).__name__, getattr(error, "sqlstate", None)
    is_of_server = isinstance(error, OF_SERVERS) or sqlstate is not None
    if not is_of_server or isinstance(error, ValueError) or str(sqlstate)[:2] in OF_VALUES:
        return kind
    # Some errors of libraries cannot be turned into text themselves.
    text = traceback.format_exception_only(error)[-1].partition(": ")[2].partition("\n")[0]
    text = text.removeprefix(f"{kind}: ")  # aiokafka's begin with it
    return f"{kind}: {text}"[:ERROR_CHARACTERS_MAX] if text else kind


def log_unhandled(_: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    """Log what an event loop would: without its objects, whose form quotes errors."""
    log.error("%s", context["message"], exc_info=context.get("exception"))


class Handler(logging.StreamHandler[TextIO]):
    """Writes lines; of one that cannot be formatted, it names the logger alone."""

    def handleError(self, record: logging.LogRecord) -> None:
        unwritten = {"name": __name__, "level": logging.ERROR, "levelname": "ERROR"}
        text = f"a line of {record.name} cannot be written"
        with suppress(OSError, ValueError):  # a stream that is closed, or a disk that is full
            self.stream.write(f"{self.format(logging.makeLogRecord({**unwritten, 'msg': text}))}\n")


def lower_failed_attempt(record: logging.LogRecord) -> bool:
    """Lower an error of a NOISY library that has no exception: an attempt has failed, and it makes
    another one, or a series counts what was lost. False if the line is not written then.

    At a start, aiokafka has an error when Kafka has not elected a coordinator yet.
    """
    if is_noisy(record) and record.levelno == logging.ERROR and not record.exc_info:
        record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        return logging.getLogger(record.name).isEnabledFor(logging.WARNING)
    return True


class OncePerMinute(logging.Filter):
    """Lets one line per cause and minute through, which says how many were not written."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()
        self._last: dict[tuple[str, ...], tuple[float, int]] = {}
        """When a line with this cause was written, and how many were not since then."""

    def filter(self, record: logging.LogRecord) -> bool:
        cause = get_cause(record)
        if cause is None:
            return True
        with self._lock:
            written_at, repeats = self._last.get(cause, (-inf, 0))
            if 0 <= record.created - written_at < REPEAT_SECONDS_MIN:
                self._last[cause] = written_at, repeats + 1
                return False
            self._last[cause] = record.created, 0
        record.repeats = repeats or None
        return True


def get_cause(record: logging.LogRecord) -> tuple[str, ...] | None:
    """What lines are about that can come again and again; None for an outcome."""
    if is_noisy(record):
        return record.name, str(record.msg)
    cause = getattr(record, CAUSE, None)
    return None if cause is None else (record.name, to_message(record), str(cause))


def is_noisy(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] in NOISY


def to_message(record: logging.LogRecord) -> str:
    """The message of a record; libraries fill theirs with errors, which are named then."""
    if not isinstance(record.args, tuple):
        return record.getMessage()
    named = tuple(
        name_error(each) if isinstance(each, BaseException) else each for each in record.args
    )
    return str(record.msg) % named if named else str(record.msg)


class Formatter(logging.Formatter):
    """Writes a record as a line of its fields, or as several with EACH.

    `describe` makes text of an error.
    """

    def __init__(self, write: Callable[[Mapping[str, Any]], str], describe: Describe) -> None:
        super().__init__()
        self._write = write
        self._describe = describe

    def format(self, record: logging.LogRecord) -> str:
        written = datetime.fromtimestamp(record.created, UTC).replace(tzinfo=None)
        line: dict[str, Any] = {
            TIME: f"{written.isoformat(timespec='microseconds')}Z",
            LEVEL: record.levelname.lower(),
            LOGGER: record.name,
            MESSAGE: to_message(record),
        }
        line |= {
            name: value
            for name, value in vars(record).items()
            if value is not None and name not in NOT_FIELDS
        }
        each = getattr(record, EACH, None)
        if each is not None:
            return "\n".join([self._write(line | fields) for fields in each])
        line |= telemetry.ids_of(trace.get_current_span())
        if record.exc_info and record.exc_info[1]:
            line[EXCEPTION] = self._describe(record.exc_info[1])
        return self._write(line)


def create_formatter(settings: LogSettings, *, is_text: bool, colors: bool) -> Formatter:
    """Make that of people or of programs. The texts of errors are written with DEBUG alone."""
    describe = describe_with_text if settings.log_level == "DEBUG" else describe_without_text
    return Formatter(lambda line: to_text(line, colors=colors) if is_text else dump(line), describe)


def describe_without_text(error: BaseException, shown: frozenset[int] = frozenset()) -> str:
    """Write the errors that led to one, and where each was raised, by `name_error`; none twice."""
    shown |= {id(error)}
    parts = [HEADING, *traceback.format_tb(error.__traceback__), f"{name_error(error)}\n"]
    if isinstance(error, BaseExceptionGroup):
        parts += [describe_without_text(each, shown) for each in error.exceptions]
    earlier = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if earlier is not None and id(earlier) not in shown:
        parts.insert(0, describe_without_text(earlier, shown))
    return "".join(parts)


def describe_with_text(error: BaseException) -> str:
    """Write an error as Python does."""
    return "".join(traceback.format_exception(error))


def dump(line: Mapping[str, Any]) -> str:
    """Write a line as JSON, with nothing in it that ends a line elsewhere."""
    try:
        text = to_json(line, fallback=repr, bytes_mode="hex", inf_nan_mode="strings").decode()
    except ValueError:  # it does not take half a surrogate pair, as in the name of a file
        text = ""
    return text if text and text.isascii() else json.dumps(line, default=repr)
