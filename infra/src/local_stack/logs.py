"""`logs`: what processes have logged, and what they log from now on."""

import argparse
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from fetching.errors import Failure
from local_stack import order_log
from local_stack.order_log import LoggedLine
from local_stack.progress import is_terminal, tell
from local_stack.run_folder import RunFolder
from shared.runtime import log_lines
from shared.runtime.log_lines import EXCEPTION, LEVEL, MESSAGE

FOLLOW_POLL_SECONDS = 0.2
TOOLS = ("setup", "supervisord")
LOG_BYTES_READ = 16_384
ERROR_CHARACTERS_MAX = 200

OWN_PREFIX = "hometown: "
OWN_ERROR = re.compile(f"^{OWN_PREFIX}")
NAMED_ERROR = re.compile(r"^[\w.$]*(Error|Exception): \S")
ANY_ERROR = re.compile(
    r"^(?=\S).*?(\b\w*(Error|Exception)\b|\b(FATAL|ERROR|CRITICAL)\b|error:|could not)"
)
"""How Python, Java or PostgreSQL writes an error; an indented line is code, or a place in it."""


def choose_files(folder: RunFolder, name: str | None) -> list[Path]:
    """The log of one process, or those of all but our own tools.

    Raises:
        Failure: there is no such log.
    """
    logs = sorted((folder / "logs").glob("*.log"))
    if name is None:
        return [log for log in logs if log.stem not in TOOLS]
    if folder.log_of(name) in logs:
        return [folder.log_of(name)]
    known = ", ".join(log.stem for log in logs) or "none yet"
    raise Failure(f"there is no log of {name}: choose one of {known}")


def last(logs: Sequence[Path], lines_max: int) -> Iterator[str]:
    """The end of each log; with several, each line begins with its process."""
    for log in logs:
        for line in last_lines(log, lines_max):
            yield add_label(log, line, logs)


def follow(logs: Sequence[Path]) -> Iterator[str]:
    """Lines as they come, until the caller has enough; a rotated log is read from its start."""
    positions = {log: log.stat().st_size for log in logs}
    while True:
        for log in logs:
            lines, positions[log] = lines_since(log, positions[log])
            for line in lines:
                yield add_label(log, line, logs)
        time.sleep(FOLLOW_POLL_SECONDS)


def lines_since(log: Path, position: int) -> tuple[list[str], int]:
    """Whole lines after the position, and the position after them."""
    if not log.exists():
        return [], 0
    with log.open("rb") as file:
        size = log.stat().st_size
        file.seek(position if position <= size else 0)
        content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        end = file.tell() - len(content) + len(whole)
    return whole.decode(errors="replace").splitlines(), end


def add_label(log: Path, line: str, logs: Sequence[Path]) -> str:
    return with_label(log.stem, line) if len(logs) > 1 else readable(line)


def with_label(name: str, line: str) -> str:
    """A line with the process that wrote it."""
    return f"{name:<16} {readable(line)}"


def show_order(read: order_log.Read, arguments: argparse.Namespace) -> None:
    """Show the lines of all processes about an order.

    Raises:
        Failure: what `order_log.find` raises, or the arguments ask for something else as well.
    """
    if arguments.name or arguments.follow:
        raise Failure("order=ID shows what all processes have logged: leave out the other options")
    for line in order_log.find(read, arguments.order):
        tell(with_label(*line))


def readable(line: str) -> str:
    """A line as text on a terminal, and as it is for a program."""
    fields = log_lines.parse(line) if is_terminal() else None
    return log_lines.to_text(fields, colors="NO_COLOR" not in os.environ) if fields else line


def read_all(folder: RunFolder) -> Iterator[LoggedLine]:
    """All lines of all processes that are still there."""
    for log in choose_files(folder, None):
        for file in (log.with_name(f"{log.name}.1"), log):
            if file.exists():
                with file.open(errors="replace") as lines:
                    yield from (LoggedLine(log.stem, line.rstrip("\n")) for line in lines)


def last_lines(log: Path, lines: int) -> list[str]:
    """The end of a log; nothing if there is none yet."""
    return read_lines(log, log_size(log) - LOG_BYTES_READ)[-lines:]


def read_lines(log: Path, begin: int) -> list[str]:
    """The lines of a log from this byte on, or all of a shorter one, which has been rotated."""
    if not log.exists():
        return []
    with log.open("rb") as file:
        file.seek(begin if 0 < begin <= log.stat().st_size else 0)
        return file.read(LOG_BYTES_READ).decode(errors="replace").splitlines()


def log_size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def find_error(lines: Sequence[str]) -> str:
    """`find_named_error`, or else the last line that says anything."""
    last = next(filter(str.strip, reversed(lines)), "")
    return find_named_error(lines) or shorten(to_plain(last))


def find_named_error(lines: Sequence[str]) -> str:
    """The first line that names an error: our own, or else that of a library; empty without one."""
    plain = [to_plain(line) for line in lines]
    for pattern in (OWN_ERROR, NAMED_ERROR, ANY_ERROR):
        for line in plain:
            if pattern.search(line):
                return shorten(line)
    return ""


def to_plain(line: str) -> str:
    """Write a line of JSON as a library would, with what it says about an error."""
    fields = log_lines.parse(line)
    if fields is None:
        return line
    raised = str(fields.get(EXCEPTION, "")).rstrip().rpartition("\n")[2]
    about = [str(fields[MESSAGE]), *filter(None, [fields.get("error"), raised])]
    return f"{fields[LEVEL].upper()} {': '.join(about)}"


def shorten(line: str) -> str:
    return line.removeprefix(OWN_PREFIX).strip()[:ERROR_CHARACTERS_MAX]
