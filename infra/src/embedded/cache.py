"""The user's cache folder: what is in it is complete, because it is renamed into place."""

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from embedded.errors import Failure

WORKSHOP_PREFIX = ".new-"
WORKSHOP_SECONDS_MAX = 6 * 3600
"""A workshop older than this was left by a process that was killed."""

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


def publish(made: Path, target: Path) -> None:
    """Put a finished folder into place; an incomplete one of the same name gives way.

    Raises:
        OSError: the rename failed although nobody else had published the same.
    """
    if target.exists():
        os.rename(target, made.with_name("replaced"))
    try:
        os.rename(made, target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


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
