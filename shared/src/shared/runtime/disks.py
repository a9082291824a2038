"""How much room there is on the disks that data lie on."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from shared.runtime import metrics

FREE = metrics.Gauge("hometown.disk.free", "By", "Bytes that data can still take")
SIZE = metrics.Gauge("hometown.disk.size", "By", "Bytes of the whole disk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """Bytes of a file system; `free` are those that a process without special rights can take."""

    free: int
    size: int


def measure(folder: Path) -> Disk | None:
    """The disk of a folder, or of where it will be; None where it cannot be seen."""
    try:
        usage = shutil.disk_usage(next(each for each in (folder, *folder.parents) if each.exists()))
    except OSError:
        return None
    return Disk(free=usage.free, size=usage.total)


def expose(read: Callable[[], Mapping[str, Disk | None]]) -> None:
    """Show the disks that `read` finds, by their names; it must not wait."""
    FREE.set_reader(lambda: [({"disk": name}, each.free) for name, each in read().items() if each])
    SIZE.set_reader(lambda: [({"disk": name}, each.size) for name, each in read().items() if each])
