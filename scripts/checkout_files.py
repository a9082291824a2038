"""The files of a checkout, or of a copy that is not yet one."""

import os
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath

BINARIES = frozenset({".png", ".gz", ".avro", ".ico", ".woff2"})
NOT_OURS = frozenset({".git", ".venv", ".tools", ".run", "__pycache__"})
GIT_SECONDS_MAX = 120


def list_files(root: Path) -> list[str]:
    """The files that git has or would have; without git, all but those that it ignores, sorted."""
    if (root / ".git").exists():
        ended = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
            timeout=GIT_SECONDS_MAX,
        )
        return sorted({file for file in ended.stdout.split("\0") if (root / file).is_file()})
    found: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in NOT_OURS]
        found += [str(PurePosixPath(Path(folder, name).relative_to(root))) for name in names]
    return sorted(found)


def copy_files(root: Path, target: Path) -> None:
    """Copy the files of a checkout, as they are now, with their times and rights."""
    for name in list_files(root):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, target / name)


def read_texts(
    root: Path, files: Iterable[str], skipped: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Each file with its text, but for those that are `skipped` or have none."""
    for file in files:
        if PurePosixPath(file).suffix not in BINARIES and file not in skipped:
            yield file, (root / file).read_text()
