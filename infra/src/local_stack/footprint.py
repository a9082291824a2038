"""`footprint`: the resident memory of each process with its children, and of all together."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from fetching.errors import Failure
from local_stack import supervision
from local_stack.figures import Figure
from local_stack.progress import table
from local_stack.run_folder import RunFolder
from local_stack.stack_spec import StackSpec

MEBIBYTE = 1 << 20
SUPERVISOR = "supervisord"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes of a process and its children.

    Pages that several processes share count in full for each in `resident`, and in fair parts in
    `proportional`, which not every system reports.
    """

    name: str
    resident: int
    proportional: int | None


def family(pid: int) -> list[psutil.Process]:
    """The process and all its descendants that still run."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def measure(name: str, processes: Sequence[psutil.Process]) -> Memory:
    """The sum over the processes; one that has ended meanwhile counts for nothing."""
    resident, proportional = 0, 0
    proportional_known = True
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            resident += process.memory_info().rss
            try:
                proportional += process.memory_full_info().pss
            except (psutil.AccessDenied, AttributeError):
                proportional_known = False
    return Memory(
        name=name, resident=resident, proportional=proportional if proportional_known else None
    )


def footprint(spec: StackSpec, folder: RunFolder) -> list[Memory]:
    """Each process of the table, the supervisor itself, and the sum as the last one.

    Raises:
        Failure: nothing runs.
    """
    programs = supervision.programs(folder)
    if programs is None:
        raise Failure("nothing runs here: `make up` first")
    pids = {
        process.name: programs[process.name].pid
        for process in spec.processes
        if process.name in programs and programs[process.name].pid
    }
    each = [measure(name, family(pid)) for name, pid in pids.items()]
    each.append(measure(SUPERVISOR, family(supervision.supervisor_pid(folder))[:1]))
    return [*each, total(each)]


def total(each: Sequence[Memory]) -> Memory:
    parts = [memory.proportional for memory in each if memory.proportional is not None]
    return Memory(
        name="all",
        resident=sum(memory.resident for memory in each),
        proportional=sum(parts) if len(parts) == len(each) else None,
    )


def as_table(memories: Sequence[Memory]) -> str:
    rows = [
        (memory.name, megabytes(memory.proportional), megabytes(memory.resident))
        for memory in memories
    ]
    return table(("name", "fair share", "resident"), rows)


def megabytes(size: int | None) -> str:
    return "unknown" if size is None else f"{size / MEBIBYTE:,.0f} MiB"


def as_figures(memories: Sequence[Memory]) -> list[Figure]:
    """Two figures per process: its fair share where that is known, and all its pages."""
    whole = memories[-1]
    return [
        figure
        for memory in memories
        for figure in (
            as_figure(f"{memory.name} resident", memory.resident, whole.resident),
            as_figure(f"{memory.name} fair share", memory.proportional, whole.proportional),
        )
        if figure
    ]


def as_figure(name: str, size: int | None, whole: int | None) -> Figure | None:
    if size is None:
        return None
    ratio = round(size / whole, 3) if whole else None
    return Figure(
        name=name,
        value=round(size / MEBIBYTE, 1),
        unit="MiB",
        ratio=ratio,
        ratio_to=None if ratio is None else "all",
    )
