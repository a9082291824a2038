"""`footprint`: the memory of each container, and of all together."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from containers.compose import Project
from fetching.errors import Failure
from local_stack.figures import Figure
from local_stack.footprint import MEBIBYTE, megabytes
from local_stack.progress import table

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes that the engine counts for a container: without the files that it could forget."""

    name: str
    used: int
    limit: int


def footprint(project: Project) -> list[Memory]:
    """Each container that runs, and the sum as the last one.

    Raises:
        Failure: nothing runs.
    """
    running = {
        container.id: container.process
        for container in project.containers().values()
        if container.state == "running"
    }
    if not running:
        raise Failure(f"nothing runs here: `make up {project.way}` first")
    reported = project.docker("stats", "--no-stream", "--format", "json", *running)
    each = [as_memory(json.loads(line), running) for line in reported.splitlines()]
    whole = Memory(
        name="all",
        used=sum(memory.used for memory in each),
        limit=sum(memory.limit for memory in each),
    )
    return [*sorted(each, key=lambda memory: memory.name), whole]


def as_memory(reported: Mapping[str, str], running: Mapping[str, str]) -> Memory:
    """From one line of `docker stats`, such as `716.3MiB / 2GiB`."""
    used, limit = (as_bytes(size) for size in reported["MemUsage"].split("/"))
    return Memory(name=running[reported["ID"]], used=used, limit=limit)


def as_bytes(size: str) -> int:
    """Raises ValueError for what is no size."""
    matched = re.fullmatch(r"([\d.]+)(\w+)", size.strip())
    if not matched or matched[2] not in UNITS:
        raise ValueError(f"{size} is no size")
    return round(float(matched[1]) * UNITS[matched[2]])


def as_table(memories: Sequence[Memory]) -> str:
    rows = [(each.name, megabytes(each.used), megabytes(each.limit)) for each in memories]
    return table(("name", "used", "limit"), rows)


def as_figures(memories: Sequence[Memory]) -> list[Figure]:
    """One per container, as a part of all."""
    whole = memories[-1]
    return [
        Figure(
            name=each.name,
            value=round(each.used / MEBIBYTE, 1),
            unit="MiB",
            ratio=round(each.used / whole.used, 3),
            ratio_to="all",
        )
        for each in memories
    ]
