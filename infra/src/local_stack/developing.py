"""`dev`: the processes to which a saved file belongs are restarted, while the stack runs.

Which ones these are follows from the declarations. A package that does not import is not restarted:
its processes run on with the code of before, until a save repairs it.
"""

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from watchfiles import PythonFilter, watch

from fetching.errors import Failure
from local_stack import supervision
from local_stack.down import stop_and_wait
from local_stack.progress import Tone, tell
from local_stack.readiness import wait_until_ready
from local_stack.replacing import replace_in_place
from local_stack.settings import Settings
from local_stack.stack_spec import Process, StackContext, StackSpec
from local_stack.status import as_found
from shared.runtime.declarations import FILE, Declarations, Service, load_declarations

SHARED = Path("shared/src/shared")
MIGRATIONS = "migrations"
SUFFIXES = (".sql", ".html", ".css", ".js", ".json", ".toml")
"""Besides those of Python: what packages read when they start."""
FILES_NAMED_MAX = 2
POLL_MILLISECONDS = 500
"""How long a batch of changes is waited for before the next wait."""
IMPORT_SECONDS_MAX = 120
IMPORT_LINES_SHOWN = 8

ENDED_ONCE = 2
"""Code that ends its process at the start does so each time: the second start is not waited for."""

SLOW_NEED = "spark"
"""A process that needs it takes ten seconds to start: it is restarted for its own code only."""

IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Processes of one package, and the saved files that they run."""

    package: str
    names: Sequence[str]
    files: Sequence[Path]

    @property
    def reason(self) -> str:
        """`users-svc/src/users_svc/user.py and 3 more`"""
        named = ", ".join(map(str, self.files[:FILES_NAMED_MAX]))
        more = len(self.files) - FILES_NAMED_MAX
        return f"{named} and {more} more" if more > 0 else named


def develop(
    spec: StackSpec, settings: Settings, root: Path, stop: threading.Event | None = None
) -> None:
    """Restart what saved files belong to until Ctrl-C, or until the event is set."""
    root = root.resolve()
    declared = load_declarations(root)
    folders = find_folders(declared, root)
    names = ", ".join(str(folder.relative_to(root)) for folder in folders)
    batches = watch(
        *folders,
        watch_filter=PythonFilter(extra_extensions=SUFFIXES),
        stop_event=stop,
        raise_interrupt=False,
        rust_timeout=POLL_MILLISECONDS,
        yield_on_timeout=True,
    )
    with contextlib.suppress(KeyboardInterrupt):
        next(batches, None)  # it watches from the first one on, which is empty
        tell(f"watching {names}")
        for changes in batches:
            saved = sorted({Path(path).relative_to(root) for _, path in changes})
            for line in find_manual(saved):
                tell(line, Tone.POOR)
            if restarts := find_restarts(declared, saved):
                asyncio.run(restart_all(spec, as_found(settings), restarts))
    tell("no longer watching; the stack still runs: `make down` stops it")


def find_folders(declared: Declarations, root: Path) -> list[Path]:
    """The folders with the code that processes run, and with their declarations."""
    wanted = [root / SHARED, *(root / service.folder for service in declared.services)]
    return [folder for folder in wanted if folder.is_dir()]


def find_manual(saved: Iterable[Path]) -> list[str]:
    """One line for each saved file that no restart applies."""
    lines = []
    for path in saved:
        if is_migration(path):
            # Never by itself: one that was applied when it was half-written cannot be changed.
            lines.append(f"{path} is a migration: `make down up` applies it once it is complete")
        elif path.name == FILE:
            lines.append(f"{path} is read by `make up`")
    return lines


def is_migration(path: Path) -> bool:
    return path.parent.name == MIGRATIONS


def find_restarts(declared: Declarations, saved: Sequence[Path]) -> list[Restart]:
    """One for each service that runs the code of a saved file; paths are those in the checkout."""
    restarts = []
    for service in declared.services:
        runs = {path: find_processes(service, path) for path in saved}
        names = [
            process.name
            for process in service.processes.values()
            if any(process.name in found for found in runs.values())
        ]
        files = [path for path, found in runs.items() if found]
        if names:
            restarts.append(Restart(package=service.package, names=names, files=files))
    return restarts


def find_processes(service: Service, path: Path) -> set[str]:
    """Names of the processes of a service that run the code of a file.

    All of them, as none is slow to start but those that need Spark: these are restarted for the
    folder that has the name of their command, and for what is in no such folder.
    """
    source = Path(service.folder, "src", service.package)
    is_shared = path.is_relative_to(SHARED)
    if is_migration(path) or not (is_shared or path.is_relative_to(source)):
        return set()
    room = None if is_shared else path.relative_to(source).parts[0]
    return {
        process.name
        for process in service.processes.values()
        if SLOW_NEED not in process.needs or room in (process.command, path.name)
    }


async def restart_all(spec: StackSpec, context: StackContext, restarts: Sequence[Restart]) -> None:
    """Restart what runs; what was restarted, and what was not, is reported in one line each."""
    try:
        with context.folder.locked():
            await asyncio.gather(*(restart(spec, context, each) for each in restarts))
    except Failure as failure:
        report(failure)


async def restart(spec: StackSpec, context: StackContext, wanted: Restart) -> None:
    programs = supervision.programs(context.folder) or {}
    processes = {
        process: programs[process.name]
        for process in spec.processes
        if process.name in wanted.names
        and process.name in programs
        and programs[process.name].state != "STOPPED"
    }
    began = time.monotonic()
    try:
        if processes:
            await demand_imports(context, next(iter(processes)), wanted.package)
    except Failure as failure:
        report(failure)
        return
    are_ready = await asyncio.gather(
        *(renew(context, process, program) for process, program in processes.items())
    )
    done = [
        process.name for process, is_ready in zip(processes, are_ready, strict=True) if is_ready
    ]
    if done:
        seconds = time.monotonic() - began
        tell(f"{', '.join(done)} restarted after {seconds:.1f} s: {wanted.reason}", Tone.GOOD)


def report(failure: Failure) -> None:
    for line in failure.details:
        tell(f"  {line}")
    tell(str(failure), Tone.BAD)


async def demand_imports(context: StackContext, process: Process, package: str) -> None:
    """Raises Failure if a module of the package does not import where the process runs."""
    importing = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", IMPORT_ALL, package),
        env={**supervision.environment(context.folder), **process.environment(context)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(IMPORT_SECONDS_MAX):
            output, _ = await importing.communicate()
    except TimeoutError:
        raise Failure(f"{package} is not imported within {IMPORT_SECONDS_MAX} s") from None
    finally:
        if importing.returncode is None:
            importing.kill()
            await importing.wait()
    if importing.returncode != 0:
        lines = output.decode(errors="replace").splitlines()[-IMPORT_LINES_SHOWN:]
        raise Failure(
            f"{package} does not import; its processes run on with the code of before",
            details=lines,
        )


async def renew(context: StackContext, process: Process, program: supervision.Program) -> bool:
    """Replace a process, or start one that has ended; whether it is ready afterwards."""
    try:
        if process.replaced_on and program.state == "RUNNING":
            await replace_in_place(context, process, process.replaced_on)
        else:
            await start_again(context, process)
    except Failure as failure:
        report(failure)
        return False
    return True


async def start_again(context: StackContext, process: Process) -> None:
    """Raises Failure: it is not ready in time."""
    try:
        await asyncio.to_thread(stop_and_wait, context.folder, [process])
    finally:  # also when Ctrl-C is pressed meanwhile
        supervision.start(context.folder, process.name)
    await wait_until_ready(context, process, process.ready_seconds_max, ENDED_ONCE)
