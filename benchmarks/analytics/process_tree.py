"""CPU time and memory of a process and its descendants: Spark is a Python, a JVM, and Pythons."""

import psutil

from local_stack import supervision
from local_stack.footprint import family, measure
from local_stack.stack_spec import StackContext


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
    """Resident memory. A page that forked processes share counts once, where the system says so."""
    memory = measure(str(pid), family(pid))
    return memory.resident if memory.proportional is None else memory.proportional


def servers_cpu_seconds(context: StackContext) -> dict[str, float]:
    """CPU time of PostgreSQL and Kafka so far, by name."""
    programs = supervision.programs(context.folder) or {}
    return {name: cpu_seconds(each.pid) for name, each in programs.items()}
