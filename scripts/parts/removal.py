"""Take parts out of a checkout: their files, all that mentions them, what is generated from it."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from scripts.checkout_files import list_files, read_texts
from scripts.parts.declared import (
    FILE,
    Part,
    PartsError,
    choose_parts,
    either,
    find_own,
    load_parts,
    recognize,
    recognize_marks,
)
from scripts.parts.documents import cut_document
from scripts.parts.python_code import cut_python
from scripts.parts.text import (
    cut_dockerfile,
    cut_entries,
    cut_makefile,
    cut_patch,
    cut_toml,
)
from scripts.steps import (
    LOCK,
    PYTHON,
    Report,
    Step,
    StepFailed,
    install_packages,
    lock_packages,
    run_steps,
    write_generated,
)

TESTS = re.compile(r"(^|/)tests/|^e2e-tests/|^test_support/")
SETTINGS = frozenset({".yml", ".yaml", ".txt", ".conf", ".cfg", ".example", ".sh"}) | {
    *(".dockerignore", ".gitignore", "CODEOWNERS", ".editorconfig"),
}
SKIPPED = frozenset({LOCK, FILE})
"""What a command writes again, or the removal itself."""
MENTIONS_SHOWN_MAX = 40
LINES_SHOWN = 3
"""Of what a step printed before it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A line that mentions a part which is not there."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text.strip()[:100]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What a removal would do: files that go, and files with their new text."""

    parts: Sequence[Part]
    pattern: re.Pattern[str]
    removed: Sequence[str]
    changed: dict[str, str]

    @property
    def names(self) -> str:
        return ", ".join(part.name for part in self.parts)


def remove_parts(root: Path, names: Sequence[str], report: Report) -> Cut:
    """Take the named parts, and those that need them, out of the checkout `root`.

    Raises:
        PartsError: a name is unknown, a file is no Python, or a step failed.
    """
    cut = plan_cut(root, names)
    report(f"taking out {cut.names}: {len(cut.removed)} files")
    apply_cut(root, cut)
    report(f"cut out of {len(cut.changed)} files what mentioned it")
    renew(root, report)
    return cut


def plan_cut(root: Path, names: Sequence[str]) -> Cut:
    """
    Raises:
        PartsError: a name is unknown, parts.toml is wrong, or a file is no Python.
    """
    parts = choose_parts(load_parts(root), names)
    files = list_files(root)
    removed = sorted({file for part in parts for file in find_own(part, files)})
    rest = sorted(set(files) - set(removed))
    kept_names = {PurePosixPath(file).name for file in rest}
    own_names = {PurePosixPath(file).name for file in removed} - kept_names
    pattern, marks = recognize(parts, own_names), recognize_marks(parts)
    changed: dict[str, str] = {}
    for file, text in read_texts(root, rest, SKIPPED):
        try:
            cut = cut_file(file, text, pattern, marks)
        except SyntaxError as error:
            raise PartsError(f"{file} is no Python ({error}); correct that first") from None
        if cut != text:
            changed[file] = cut
    changed[FILE] = drop_declared((root / FILE).read_text(), parts, removed)
    return Cut(parts=parts, pattern=pattern, removed=removed, changed=changed)


def cut_file(path: str, text: str, pattern: re.Pattern[str], marks: re.Pattern[str]) -> str:
    """The text of a file without what mentions the parts; of kinds unknown here, what is marked.

    Raises:
        SyntaxError: it should be Python, and is not.
    """
    if not pattern.search(text):
        return text
    match PurePosixPath(path):
        case PurePosixPath(suffix=".py"):
            return cut_python(text, pattern, whole_functions=bool(TESTS.search(path)))
        case PurePosixPath(suffix=".md"):
            return cut_document(text, pattern)
        case PurePosixPath(name="Makefile"):
            return cut_makefile(text, pattern)
        case PurePosixPath(suffix=".toml"):
            return cut_toml(text, pattern)
        case PurePosixPath(name="Dockerfile"):
            return cut_dockerfile(text, pattern)
        case PurePosixPath(suffix=".patch"):
            return cut_patch(text, pattern)
        case PurePosixPath(suffix=".json"):
            return re.sub(r",(\s*[}\]])", r"\1", cut_entries(text, pattern))
        case PurePosixPath() as other if other.suffix in SETTINGS or other.name in SETTINGS:
            return cut_entries(text, pattern)
        case _:
            return cut_entries(text, marks)


def drop_declared(text: str, parts: Sequence[Part], removed: Sequence[str]) -> str:
    """parts.toml without the tables of the parts that are gone, and files of others that are."""
    for part in parts:
        text = cut_toml(text, re.compile(rf"^\[{re.escape(part.name)}\]"))
    return cut_toml(text, re.compile(rf'^\s+"{either(removed)}",$'))


def apply_cut(root: Path, cut: Cut) -> None:
    for file in cut.removed:
        (root / file).unlink()
        for folder in (root / file).parents:
            # A folder without files is no part of a checkout.
            if folder == root or any(folder.iterdir()):
                break
            folder.rmdir()
    for file, text in cut.changed.items():
        if text.strip():
            (root / file).write_text(text)
        else:
            (root / file).unlink()


def renew(root: Path, report: Report) -> None:
    """Bring up to date what follows from the files that are left.

    Raises:
        PartsError: a step failed.
    """
    try:
        run_steps(root, list_steps(), report)
    except StepFailed as error:
        printed = " / ".join(error.lines[-LINES_SHOWN:])
        raise PartsError(f"{error.title} failed: {printed}; `git checkout .` undoes all") from error


def list_steps() -> list[Step]:
    ruff = [PYTHON, "-m", "ruff"]
    return [
        ("providing uv", [sys.executable, "scripts/setup.py", "--tools"]),
        lock_packages("locking the packages that are left"),
        install_packages("installing them"),
        (
            "dropping imports that nothing uses any more",
            [*ruff, "check", "-q", "--select=F401,I", "--fix", "."],
        ),
        ("formatting", [*ruff, "format", "-q", "."]),
        *write_generated("writing the contracts"),
    ]


def find_mentions(root: Path, pattern: re.Pattern[str]) -> list[Mention]:
    """Lines of the files that are left which a part's words match."""
    return [
        Mention(path=file, line=number, text=line)
        for file, text in read_texts(root, list_files(root), SKIPPED)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
