"""Programs of learners, which may do anything."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def execute(path: Path) -> Mapping[str, Any]:
    """The names that a program defines, read from its file each time.

    The program is no module that can be imported, so that Spark's workers get its functions by
    value.
    """
    names: dict[str, Any] = {"__name__": f"exercise_{path.stem}", "__file__": str(path)}
    with surviving():
        exec(compile(path.read_text(), path, "exec"), names)
    return names


@contextmanager
def surviving() -> Iterator[None]:
    """Raises RuntimeError if what runs inside would end Python."""
    try:
        yield
    except SystemExit as error:
        raise RuntimeError("it ends Python") from error
