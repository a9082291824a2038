"""`status`: what is true of each process at this moment, whatever state the stack is in."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import psutil

from local_stack import orphans, ports, supervision
from local_stack.footprint import family, measure, megabytes
from local_stack.postgres import ROLES
from local_stack.progress import Tone, add_colour, duration, table, tell
from local_stack.readiness import obstacle
from local_stack.run_folder import RunFolder, read_json
from local_stack.settings import Settings
from local_stack.stack_spec import Process, StackContext, StackSpec

TONES = {"ready": Tone.GOOD, "dead": Tone.BAD, "not ready": Tone.BAD, "orphaned": Tone.BAD}


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One process; `reason` explains a state that is not as it should be."""

    name: str
    state: str
    required: bool
    reason: str = ""
    address: str = ""
    pid: int | None = None
    uptime_seconds: int | None = None
    resident_bytes: int | None = None

    @property
    def is_fine(self) -> bool:
        return self.state == "ready" or not self.required


def status(spec: StackSpec, settings: Settings) -> list[Status]:
    """Every process of the table, probed side by side."""
    context = as_found(settings)
    programs = supervision.programs(context.folder)
    orphans = orphans_by_name(context.folder) if programs is None else {}
    return asyncio.run(look_at_all(spec, context, programs or {}, orphans))


def as_found(settings: Settings) -> StackContext:
    """The stack as its files describe it, without writing any."""
    folder = RunFolder(settings.run_dir)
    return StackContext(
        settings=settings,
        folder=folder,
        ports=ports.load(folder),
        passwords=dict.fromkeys(ROLES, "") | (read_json(folder.secrets) or {}),
    )


def orphans_by_name(folder: RunFolder) -> dict[str, psutil.Process]:
    """The first process of each program that has lost its supervisor."""
    found: dict[str, psutil.Process] = {}
    for process in orphans.find(folder):
        name = orphans.program_of(process)
        if name:
            found.setdefault(name, process)
    return found


async def look_at_all(
    spec: StackSpec,
    context: StackContext,
    programs: Mapping[str, supervision.Program],
    orphans: Mapping[str, psutil.Process],
) -> list[Status]:
    return await asyncio.gather(
        *(
            look_at(context, process, programs.get(process.name), orphans.get(process.name))
            for process in spec.processes
        )
    )


async def look_at(
    context: StackContext,
    process: Process,
    program: supervision.Program | None,
    orphan: psutil.Process | None,
) -> Status:
    """The status of one process, which is probed if it runs."""
    if orphan:
        reason = "runs without its supervisor: `make up` or `make down`"
        return describe(context, process, "orphaned", reason, pid=orphan.pid)
    if program is None or program.state == "STOPPED":
        return describe(context, process, "stopped", "on request" if process.on_request else "")
    if program.is_alive:
        uptime = max(0, int(time.time()) - program.started_at_seconds)
        seen = await obstacle(context, process)
        note = process.note(context.folder)
        state = alive_state(process, seen, uptime, note)
        reason = note or seen if seen else ""
        return describe(context, process, state, reason, pid=program.pid, uptime_seconds=uptime)
    if program.state == "EXITED" and not process.required:
        return describe(context, process, "absent", process.note(context.folder))
    state = "stopping" if program.state == "STOPPING" else "dead"
    return describe(context, process, state, f"{program.error or 'ended'}: `make logs`")


def alive_state(process: Process, seen: str | None, uptime_seconds: int, note: str) -> str:
    """One that reports what it is busy with is starting, however long that takes."""
    if seen is None:
        return "ready"
    return "starting" if note or uptime_seconds < process.ready_seconds_max else "not ready"


def describe(
    context: StackContext,
    process: Process,
    state: str,
    reason: str = "",
    *,
    pid: int | None = None,
    uptime_seconds: int | None = None,
) -> Status:
    known = [port for port in process.ports if port.name in context.ports]
    return Status(
        name=process.name,
        state=state,
        required=process.required,
        reason=reason,
        address=known[0].address(context) if known else "",
        pid=pid,
        uptime_seconds=uptime_seconds,
        resident_bytes=measure(process.name, family(pid)).resident if pid else None,
    )


def as_table(statuses: Sequence[Status]) -> str:
    """For people; the state carries the colour, and the reason is last as it can be long."""
    header = ("name", "state", "pid", "up", "memory", "address", "")
    rows = [
        (
            each.name,
            each.state,
            str(each.pid or ""),
            "" if each.uptime_seconds is None else duration(each.uptime_seconds),
            "" if each.resident_bytes is None else megabytes(each.resident_bytes),
            each.address,
            each.reason,
        )
        for each in statuses
    ]
    lines = table(header, rows).splitlines()
    tones = [TONES.get(each.state, Tone.POOR) for each in statuses]
    coloured_lines = [add_colour(line, tone) for line, tone in zip(lines[1:], tones, strict=True)]
    return "\n".join([lines[0], *coloured_lines])


def show(statuses: Sequence[Status], *, as_json: bool) -> int:
    """Print it as JSON or as a table; the exit status is 0 if everything is ready."""
    if as_json:
        tell(json.dumps([asdict(each) for each in statuses], indent=2))
    else:
        tell(as_table(statuses))
    return 0 if all(each.is_fine for each in statuses) else 1
