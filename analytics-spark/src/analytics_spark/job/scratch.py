"""Folders for what Spark writes while it runs, such as shuffled rows and native libraries.

Spark removes its files at its end, but not when it is killed: then the next process does.
"""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "hometown-spark-"


def make_own_folder(root: Path) -> Path:
    """A new folder in `root` for this process, after removing those of processes that have ended.

    A folder is locked as long as its process lives. What Spark starts does not inherit the lock.
    """
    root.mkdir(parents=True, exist_ok=True)
    making = os.open(root, os.O_RDONLY)
    try:
        # One process at a time, or a folder could be removed before it is locked.
        fcntl.flock(making, fcntl.LOCK_EX)
        for folder in root.glob(f"{PREFIX}*"):
            remove_if_left(folder)
        own = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
        # Never closed: the lock ends with the process.
        fcntl.flock(os.open(own, os.O_RDONLY), fcntl.LOCK_EX)
        return own
    finally:
        os.close(making)


def remove_if_left(folder: Path) -> None:
    """Remove the folder unless its process lives, or belongs to another user."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        pass
    finally:
        os.close(lock)
