"""A folder on a file system of its own, which can be filled to its last byte."""

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOM_BYTES = 256 << 20
"""Beyond what the folder holds when it is moved there."""
BALLAST = "ballast"
PIECE_BYTES = 1 << 20
COMMAND_SECONDS_MAX = 60


class NoSmallDisk(Exception):
    """This user or this kernel cannot mount a file system."""


def move_to_small_disk(folder: Path) -> None:
    """Move the content of a folder, which no process uses, to a small disk that is mounted there.

    Raises:
        NoSmallDisk: nothing was changed.
    """
    large = folder.with_name(f"{folder.name}-large")
    size_bytes = count_bytes(folder) + ROOM_BYTES
    folder.rename(large)
    try:
        folder.mkdir()
        run("mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "hometown-drill", str(folder))
    except NoSmallDisk:
        folder.rmdir()
        large.rename(folder)
        raise
    run("cp", "-a", f"{large}/.", str(folder))
    shutil.rmtree(large)


def discard_small_disk(folder: Path) -> None:
    """The folder is empty afterwards, if it was on a small disk; no process uses it."""
    if folder.is_mount():
        run("umount", str(folder))


def run(*command: str) -> None:
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX, check=False
    )
    if ended.returncode != 0:
        raise NoSmallDisk(ended.stderr.strip())


def count_bytes(folder: Path) -> int:
    """What the files occupy."""
    return sum(each.lstat().st_blocks * 512 for each in folder.rglob("*"))


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """No byte is free inside."""
    ballast = folder / BALLAST
    try:
        with ballast.open("wb", buffering=0) as file:
            for size in (PIECE_BYTES, 1):
                fill(file.fileno(), bytes(size))
        yield
    finally:
        ballast.unlink(missing_ok=True)


def fill(file: int, piece: bytes) -> None:
    """Write until there is no room for one more piece."""
    while True:
        try:
            os.write(file, piece)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return
