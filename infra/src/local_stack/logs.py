"""`logs`: what processes have logged, and what they log from now on."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from fetching.errors import Failure
from local_stack.progress import is_terminal
from local_stack.readiness import last_lines
from local_stack.run_folder import RunFolder
from shared.runtime.logs import to_text

FOLLOW_POLL_SECONDS = 0.2
TOOLS = ("setup", "supervisord")


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
    """A line for people on a terminal, and as it is for a program."""
    if is_terminal():
        line = to_text(line, colors="NO_COLOR" not in os.environ)
    return f"{log.stem:<16} {line}" if len(logs) > 1 else line
