"""The user's cache folder: what is in it is complete, because it is renamed into place."""

import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fetching.errors import Failure

WORKSHOP_PREFIX = ".new-"
WORKSHOP_SECONDS_MAX = 6 * 3600
"""A workshop older than this was left by a process that was killed."""

LOCK_POLL_SECONDS = 1

MEBIBYTE = 1 << 20


@contextmanager
def workshop(cache_dir: Path) -> Iterator[Path]:
    """A folder on the cache's own disk that vanishes with all that was not published.

    Raises:
        OSError: the cache folder cannot be written.
    """
    cache_dir.mkdir(parents=True, exist_ok=True)
    sweep(cache_dir)
    with tempfile.TemporaryDirectory(
        prefix=WORKSHOP_PREFIX, dir=cache_dir, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


def sweep(cache_dir: Path) -> None:
    """Remove what killed processes left behind."""
    for folder in cache_dir.glob(f"{WORKSHOP_PREFIX}*"):
        if time.time() - folder.stat().st_mtime > WORKSHOP_SECONDS_MAX:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def one_at_a_time(
    lock: Path, what: str, seconds_max: float, tell: Callable[[str], None]
) -> Iterator[None]:
    """The second caller waits, and finds what the first one has made.

    Raises:
        Failure: the first one is not done after `seconds_max`.
        OSError: the folder cannot be written.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + seconds_max
    with lock.open("w") as file:
        while not taken(file):
            tell(f"{what}: waiting for another process that makes it")
            if time.monotonic() > deadline:
                raise Failure(f"another process does not finish {what}: stop it")
            time.sleep(LOCK_POLL_SECONDS)
        yield


def taken(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def publish(made: Path, target: Path) -> None:
    """Put a finished folder into place; it replaces an incomplete one of the same name.

    Its files are synced first: after a power cut a folder that is in place is complete.

    Raises:
        OSError: the rename failed although no other process had published the same.
    """
    for path in made.rglob("*"):
        if path.is_file():
            sync(path)
    if target.exists():
        os.rename(target, made.with_name("replaced"))
    try:
        os.rename(made, target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def sync(path: Path) -> None:
    """Wait until what was written into a file is on the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def disk_failure(error: OSError, cache_dir: Path) -> Failure:
    """The line for a cache that cannot be written."""
    if error.errno == errno.ENOSPC:
        free = shutil.disk_usage(cache_dir).free // MEBIBYTE
        return Failure(
            f"no space left in {cache_dir} ({free} MiB free): "
            "make room or set HOMETOWN_CACHE_DIR to a larger disk"
        )
    return Failure(
        f"cannot write to {cache_dir} ({error.strerror}): "
        "make it writable or set HOMETOWN_CACHE_DIR to another folder"
    )
