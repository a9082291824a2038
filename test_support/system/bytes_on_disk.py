"""Which files hold certain bytes: python bytes_on_disk.py FOLDER, the bytes in base64, by lines.

Written for any Python without packages: it also runs inside of a container.
"""

import base64
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

CHUNK_BYTES = 1 << 24


def files_with(folder: Path, wanted: Sequence[bytes]) -> set[str]:
    """The paths of the files below a folder that hold any of these bytes."""
    found = set()
    for path in folder.rglob("*"):
        try:
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as file:
                    if any(found_in(file, wanted)):
                        found.add(str(path.relative_to(folder)))
        except FileNotFoundError:  # a server has just removed it
            continue
    return found


def found_in(file: IO[bytes], wanted: Sequence[bytes]) -> Iterator[bytes]:
    """Which of these bytes a file holds; also across the border of two chunks."""
    overlap = max(map(len, wanted))
    before = b""
    while chunk := file.read(CHUNK_BYTES):
        text = before + chunk
        yield from (each for each in wanted if each in text)
        before = text[-overlap:]


if __name__ == "__main__":
    lines = sys.stdin.read().split()
    found = files_with(Path(sys.argv[1]), [base64.b64decode(line) for line in lines])
    sys.stdout.write("".join(f"{name}\n" for name in sorted(found)))
