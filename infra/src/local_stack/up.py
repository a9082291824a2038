"""`up`: from nothing, or from any wreck, to a stack in which every process is ready."""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence

from fetching.errors import Failure
from local_stack import figures, issuer, orphans, ports, supervision
from local_stack.figures import Figure
from local_stack.logs import find_error, log_size
from local_stack.postgres import ROLES
from local_stack.progress import Tone, table, tell
from local_stack.readiness import LOG_LINES_SHOWN, wait_until_ready
from local_stack.run_folder import RunFolder, load_passwords
from local_stack.settings import Settings, Way
from local_stack.stack_spec import Preparation, Process, StackContext, StackSpec, Tier

WAY: Way = "processes"


def up(spec: StackSpec, settings: Settings, asked: Collection[str] = ()) -> StackContext:
    """Start what does not run yet and wait until all of it is ready, with the requested processes.

    Raises:
        Failure: something is in the way; what has started is left for inspection.
    """
    demand_known(asked, spec)
    began = time.monotonic()
    folder = RunFolder(settings.run_dir)
    folder.create()
    with folder.locked():
        folder.claim(WAY)
        folder.demand_finished()
        context = resolve_context(spec, settings, folder)
        for process in spec.processes:
            process.prepare(context)
        supervision.launch(context, spec.processes)
        seconds = asyncio.run(start_all(spec, context, asked))
    figures.write(folder, "up", as_figures(seconds, time.monotonic() - began))
    return context


def up_foundations(spec: StackSpec, settings: Settings) -> StackContext:
    """Start the foundations alone, with nothing prepared in them.

    Raises:
        Failure: something is in the way; what has started is left for inspection.
    """
    folder = RunFolder(settings.run_dir)
    folder.create()
    with folder.locked():
        context = resolve_context(spec, settings, folder)
        for process in spec.processes:
            process.prepare(context)
        supervision.launch(context, spec.processes)
        asyncio.run(start_tier(context, spec.of(Tier.FOUNDATION)))
    return context


def demand_known(asked: Collection[str], spec: StackSpec) -> None:
    """Raises Failure for a name of no process that is on request."""
    known = {process.name for process in spec.processes if process.on_request}
    if unknown := set(asked) - known:
        raise Failure(
            f"{', '.join(sorted(unknown))}: only {', '.join(sorted(known))} can be requested"
        )


def resolve_context(spec: StackSpec, settings: Settings, folder: RunFolder) -> StackContext:
    """Decide on ports and secrets; a stack that runs keeps what it has.

    Raises:
        Failure: a requested port is not available.
    """
    kept, wanted = ports.load(folder), spec.ports
    ports.demand_known(settings.ports_given, wanted)
    if supervision.programs(folder) is None:
        if gone := orphans.end(folder):
            tell(f"ended what was left without a supervisor: {', '.join(gone)}", Tone.POOR)
    else:
        ports.demand_unchanged(settings.ports_given, kept)
        wanted = tuple(port for port in wanted if port.name not in kept)
    chosen = ports.choose(
        wanted,
        given=settings.ports_given,
        kept=kept,
        prefer_default=settings.ports == "default",
        tell=lambda text: tell(text, Tone.POOR),
    )
    context = StackContext(
        settings=settings,
        folder=folder,
        ports=kept | chosen,
        passwords=load_passwords(folder, ROLES),
    )
    issuer.establish(folder)
    ports.save(context, spec.ports)
    return context


async def start_all(
    spec: StackSpec, context: StackContext, asked: Collection[str]
) -> Mapping[str, float]:
    """Seconds until each process that was waited for was ready."""
    services = [
        process
        for process in spec.of(Tier.SERVICE)
        if not process.on_request or process.name in asked
    ]
    idle = [process for process in services if not runs(context, process)]
    seconds = await start_tier(context, spec.of(Tier.FOUNDATION))
    if idle or not services:
        await asyncio.gather(*(prepare(context, each) for each in spec.preparations))
    seconds |= await start_tier(context, services)
    optional = [process for process in spec.processes if is_optional(process)]
    await asyncio.gather(*(report_optional(context, process) for process in optional))
    return seconds


def runs(context: StackContext, process: Process) -> bool:
    program = (supervision.programs(context.folder) or {}).get(process.name)
    return program is not None and program.is_alive


def is_optional(process: Process) -> bool:
    """Whether it starts with the others and is not waited for; a requested one is waited for."""
    return not process.required and not process.on_request


async def start_tier(context: StackContext, processes: Sequence[Process]) -> dict[str, float]:
    """Start the processes side by side; an optional one is not waited for."""
    logs = {process.name: log_size(context.folder.log_of(process.name)) for process in processes}
    for process in processes:
        supervision.start(context.folder, process.name)
    awaited = [process for process in processes if not is_optional(process)]
    seconds = await asyncio.gather(
        *(make_ready(context, process, logs[process.name]) for process in awaited)
    )
    return {process.name: each for process, each in zip(awaited, seconds, strict=True)}


async def make_ready(
    context: StackContext, process: Process, log_begin: int | None = None
) -> float:
    seconds = await wait_until_ready(context, process, process.ready_seconds_max, log_begin)
    await process.once_ready(context)
    tell(f"{process.name:<16} ready after {seconds:.1f} s", Tone.GOOD)
    return seconds


async def report_optional(context: StackContext, process: Process) -> None:
    """Say how far an optional process is, after the patience that the settings have for it."""
    patience = context.settings.jaeger_wait_seconds
    if patience and process.note(context.folder):
        tell(f"{process.name:<16} {process.note(context.folder)}; waiting {patience:.0f} s at most")
    try:
        await wait_until_ready(context, process, patience)
    except Failure as failure:
        tell(f"{process.name:<16} {process.note(context.folder) or failure}", Tone.POOR)
    else:
        tell(f"{process.name:<16} ready", Tone.GOOD)


async def prepare(context: StackContext, preparation: Preparation) -> None:
    """Run the command to its end.

    Raises:
        Failure: it failed or took too long.
    """
    process = await asyncio.create_subprocess_exec(
        *preparation.command,
        env={
            **supervision.environment(context.folder),
            **preparation.environment(context),
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(preparation.seconds_max):
            output, _ = await process.communicate()
    except TimeoutError as error:
        limit = f"{preparation.seconds_max:.0f} s"
        raise Failure(f"{preparation.name} took longer than {limit}: `make up` again") from error
    finally:
        if process.returncode is None:  # too slow, or given up because another one failed
            process.kill()
            await process.wait()
    if process.returncode != 0:
        lines = output.decode(errors="replace").splitlines()
        reason = find_error(lines) or f"status {process.returncode}"
        raise Failure(
            f"{preparation.name} failed ({reason}): correct what it reports, then `make up`",
            details=lines[-LOG_LINES_SHOWN:],
        )
    tell(f"{preparation.name:<16} done", Tone.GOOD)


def as_figures(seconds: Mapping[str, float], total: float) -> list[Figure]:
    """Seconds to ready of each process and in all."""
    whole = Figure(name="all", value=round(total, 3), unit="s")
    return [
        *(
            Figure(
                name=name,
                value=round(value, 3),
                unit="s",
                ratio=round(value / total, 3),
                ratio_to="all",
            )
            for name, value in seconds.items()
        ),
        whole,
    ]


def address_table(spec: StackSpec, context: StackContext) -> str:
    rows = [
        (port.name, port.address(context))
        for process in spec.processes
        if not process.on_request or runs(context, process)
        for port in process.ports
    ]
    return table(("name", "address"), rows)
