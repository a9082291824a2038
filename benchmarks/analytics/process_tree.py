"""CPU time and memory of a process and its descendants: Spark is a Python, a JVM, and Pythons."""

from collections.abc import Iterator

import psutil

from local_stack import supervision
from local_stack.stack_spec import StackContext


def family(pid: int) -> Iterator[psutil.Process]:
    """The process and its descendants; empty when it has ended."""
    try:
        process = psutil.Process(pid)
        yield process
        yield from process.children(recursive=True)
    except psutil.NoSuchProcess:
        return


def cpu_seconds(pid: int) -> float:
    """CPU time used so far, including children that have ended."""
    used = 0.0
    for process in family(pid):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        used += times.user + times.system + times.children_user + times.children_system
    return used


def resident_bytes(pid: int) -> int:
    """Resident memory. On Linux a page that forked processes share is counted once."""
    resident = 0
    for process in family(pid):
        try:
            memory = process.memory_full_info()
            resident += getattr(memory, "pss", memory.rss)
        except psutil.NoSuchProcess:
            continue
    return resident


def servers_cpu_seconds(context: StackContext) -> dict[str, float]:
    """CPU time of PostgreSQL and Kafka so far, by name."""
    programs = supervision.programs(context.folder) or {}
    return {name: cpu_seconds(each.pid) for name, each in programs.items()}
