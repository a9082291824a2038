"""How much room there is on a disk."""

import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """Bytes of a file system; `free` are those that a process without special rights can take."""

    free: int
    size: int


def measure(folder: Path | None) -> Disk | None:
    """Measure the disk of a folder; None without one, or where it cannot be seen."""
    if folder is None:
        return None
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return None
    return Disk(free=usage.free, size=usage.total)
