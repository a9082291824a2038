"""`dev`: the processes that run a saved file are restarted, while the stack runs.

Which ones these are follows from the declarations. A package that does not import is not restarted:
its processes run on with the code of before, until a save repairs it.
"""

import asyncio
import contextlib
import itertools
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from watchfiles import PythonFilter, watch

from fetching.errors import Failure
from local_stack import supervision
from local_stack.progress import Tone, tell
from local_stack.replacing import renew
from local_stack.settings import Settings
from local_stack.stack_spec import Process, StackContext, StackSpec
from local_stack.status import as_found
from shared.runtime.declarations import FILE, Declarations, Service, load_declarations

SHARED = Path("shared/src/shared")
MIGRATIONS = "migrations"
SUFFIXES = (".sql", ".html", ".css", ".js", ".json", ".svg", ".toml")
"""Besides those of Python: what packages read when they start."""
FILES_NAMED_MAX = 2
POLL_MILLISECONDS = 500
"""How long a batch of changes is waited for before the next wait."""
IMPORT_SECONDS_MAX = 120
IMPORT_LINES_SHOWN = 8

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
        """Such as `users-svc/src/users_svc/user.py and 3 more`."""
        named = ", ".join(map(str, self.files[:FILES_NAMED_MAX]))
        more = len(self.files) - FILES_NAMED_MAX
        return f"{named} and {more} more" if more > 0 else named


def develop(
    spec: StackSpec,
    settings: Settings,
    root: Path,
    start: Callable[[], object],
    stop: threading.Event | None = None,
) -> None:
    """Start the stack, and restart what runs saved files until Ctrl-C, or the event is set.

    Raises:
        Failure: it does not start.
    """
    root = root.resolve()
    declared = load_declarations(root)
    folders = list_folders(declared, root)
    names = ", ".join(str(folder.relative_to(root)) for folder in folders)
    batches = watch(
        *folders,
        watch_filter=PythonFilter(extra_extensions=SUFFIXES),
        stop_event=stop,
        rust_timeout=POLL_MILLISECONDS,
        yield_on_timeout=True,
    )
    waiting: set[Path] = set()
    with contextlib.suppress(KeyboardInterrupt):
        first = next(batches, set())  # it watches from here on, what is saved during the start, too
        start()
        tell(f"watching {names}")
        for changes in itertools.chain([first], batches):
            saved = sorted({Path(path).relative_to(root) for _, path in changes})
            for line in list_manual(declared, saved):
                tell(line, Tone.POOR)
            waiting |= {*saved}
            restarts = list_restarts(declared, sorted(waiting))
            if apply(spec, settings, restarts, is_first=bool(saved)):
                waiting.clear()
    tell("no longer watching; `make down` stops the stack")


def list_folders(declared: Declarations, root: Path) -> list[Path]:
    """Return the folders with the code that processes run, and with their declarations."""
    wanted = [root / SHARED, *(root / service.folder for service in declared.services)]
    return [folder for folder in wanted if folder.is_dir()]


def list_manual(declared: Declarations, saved: Sequence[Path]) -> list[str]:
    """Return a line for each saved file that no restart applies, or not to all processes."""
    lines = []
    for path in saved:
        if is_migration(path):
            # Never by itself: one that was applied when it was half-written cannot be changed.
            lines.append(f"{path} is a migration: `make down up` applies it once it is complete")
        elif path.name == FILE:
            lines.append(f"{path} is read at the start: end this, then `make dev`")
    if any(path.is_relative_to(SHARED) and not is_migration(path) for path in saved):
        lines += [
            f"{process.name} runs on with {SHARED} of before: `make replace name={process.name}`"
            for process in declared.processes
            if SLOW_NEED in process.needs
        ]
    return lines


def is_migration(path: Path) -> bool:
    return path.parent.name == MIGRATIONS


def list_restarts(declared: Declarations, saved: Sequence[Path]) -> list[Restart]:
    """Return one for each service that runs the code of a saved file, a path in the checkout."""
    restarts = []
    for service in declared.services:
        runs = {path: list_processes(service, path) for path in saved}
        names = [
            process.name
            for process in service.processes.values()
            if any(process.name in found for found in runs.values())
        ]
        files = [path for path, found in runs.items() if found]
        if names:
            restarts.append(Restart(package=service.package, names=names, files=files))
    return restarts


def list_processes(service: Service, path: Path) -> set[str]:
    """Return the names of the processes of a service that run the code of a file.

    These are all of them, but for those that need Spark and are slow to start: they are restarted
    for the folder that has the name of their command, and for what is in no folder.
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


def apply(
    spec: StackSpec, settings: Settings, restarts: Sequence[Restart], *, is_first: bool
) -> bool:
    """Restart what is asked for. Returns whether it was tried.

    It is not while another verb changes what runs; that is reported at the first attempt only.
    """
    if not restarts:
        return True
    try:
        context = as_found(settings)
        with context.folder.locked():
            asyncio.run(restart_all(spec, context, restarts))
    except Failure as failure:
        if is_first:
            report(failure)
        return False
    return True


async def restart_all(spec: StackSpec, context: StackContext, restarts: Sequence[Restart]) -> None:
    programs = supervision.programs(context.folder)
    if programs is None:
        tell("the stack does not run: `make up`", Tone.BAD)
        return
    await asyncio.gather(*(restart(spec, context, programs, each) for each in restarts))


async def restart(
    spec: StackSpec,
    context: StackContext,
    programs: Mapping[str, supervision.Program],
    wanted: Restart,
) -> None:
    """Restart those of the processes that run, or ran until their code ended them."""
    processes = [
        process
        for process in spec.processes
        if process.name in wanted.names
        and process.name in programs
        and programs[process.name].state != "STOPPED"
    ]
    if not processes:
        return
    tell(f"saved {wanted.reason}")
    try:
        await demand_imports(context, processes[0], wanted.package)
    except Failure as failure:
        report(failure)
        return
    await asyncio.gather(*(try_to_renew(context, process) for process in processes))


async def try_to_renew(context: StackContext, process: Process) -> None:
    try:
        await renew(context, process)
    except Failure as failure:
        report(failure)


def report(failure: Failure) -> None:
    for line in failure.details:
        tell(f"  {line}")
    tell(str(failure), Tone.BAD)


async def demand_imports(context: StackContext, process: Process, package: str) -> None:
    """Import each module of a package as its process would. Raises Failure if one cannot be."""
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
