"""How much room there is on the disk with the data."""

import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """Bytes of a file system; `free` are those that a process without special rights can take."""

    free: int
    size: int


def measure(folder: Path) -> Disk | None:
    """Measure the disk of a folder; None where it cannot be seen."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return None
    return Disk(free=usage.free, size=usage.total)
