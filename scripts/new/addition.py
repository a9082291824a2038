"""What is added to a checkout: files with their new text, and the steps after them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.changes import Report, Step, run_steps, unchanged_if_it_fails


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """`texts` are those of new files and of those that change, by their paths."""

    title: str
    texts: Mapping[str, str]
    steps: Sequence[Step]
    next_steps: str
    """What to read, to run and to change now."""


def add(root: Path, addition: Addition, report: Report) -> None:
    """Carry an addition out in the checkout `root`.

    Raises:
        ChangeError: a step failed; no file was changed then.
    """
    with unchanged_if_it_fails(root):
        write(root, addition)
        run_steps(root, addition.steps, report)
    report(f"{addition.title} is ready. Next:\n{addition.next_steps}".rstrip())


def write(root: Path, addition: Addition) -> None:
    """Write the files of an addition, without the steps after them."""
    for path, text in addition.texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def show(root: Path, addition: Addition, report: Report) -> None:
    """Print what an addition would do to each file, and the steps after that."""
    for path in addition.texts:
        report(f"  {'~' if (root / path).exists() else '+'} {path}")
    for title, _ in addition.steps:
        report(f"  then {title}")
    report(f"{addition.title}: nothing was changed; the last steps write more files")
