"""What a process would write to its log, within a test."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shared.runtime import logs
from shared.runtime.settings import LogSettings


class WrittenLog(io.StringIO):
    """A stream of lines; `is_terminal` says what it passes for."""

    is_terminal = False

    def isatty(self) -> bool:
        return self.is_terminal

    @property
    def lines(self) -> list[dict[str, Any]]:
        """All lines, each of which is JSON."""
        return [json.loads(line) for line in self.getvalue().splitlines()]

    def find(self, message: str) -> list[dict[str, Any]]:
        """The lines with this message."""
        return [line for line in self.lines if line["message"] == message]


@contextmanager
def written_log(*, is_terminal: bool = False, **settings: Any) -> Iterator[WrittenLog]:
    """Log as a process with these settings does; what that changes is restored at the end."""
    root = logging.getLogger()
    loggers = [root, *map(logging.getLogger, (*logs.TALKATIVE, *logs.REPEATING))]
    levels = [(each, each.level) for each in loggers]
    handlers, flags = (
        root.handlers[:],
        ("logThreads", "logProcesses", "logMultiprocessing", "_srcfile"),
    )
    before = {name: getattr(logging, name) for name in flags}
    stream = WrittenLog()
    stream.is_terminal = is_terminal
    root.handlers[:] = []
    logs.configure(LogSettings(**settings), stream)
    root.handlers += handlers
    try:
        yield stream
    finally:
        root.handlers[:] = handlers
        for name, value in before.items():
            setattr(logging, name, value)
        for logger, level in levels:
            logger.setLevel(level)
