"""The supervisor that keeps processes alive: its configuration, its start, and calls to it."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, cast
from xmlrpc.client import Fault, ServerProxy

from supervisor.xmlrpc import Faults, SupervisorTransport

from fetching.environment import inherit
from fetching.errors import Failure
from local_stack.logs import find_error
from local_stack.run_folder import RunFolder, write_atomically
from local_stack.stack_spec import Process, StackContext

NO_TERMINAL = {"PYTHONBREAKPOINT": "0"}
"""breakpoint() does nothing where it would wait for a terminal."""

MARK = "HOMETOWN_STACK"
"""Every process of a stack carries its run folder in this variable, also when it is orphaned."""

START_SECONDS_MAX = 60
STEADY_SECONDS = 1
"""A process that ends sooner has failed to start, and the next attempt waits longer."""

START_RETRIES_MAX = 100
LOG_BYTES_MAX = 10_000_000
LOG_BACKUPS_MAX = 1
POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What the supervisor reports of one process; `state` is its own word, such as RUNNING."""

    name: str
    state: str
    pid: int
    started_at_seconds: int
    exit_status: int
    error: str

    @property
    def is_alive(self) -> bool:
        return self.state in ("STARTING", "RUNNING")

    @property
    def has_failed(self) -> bool:
        """It has ended, and not as it should; the supervisor may start it again."""
        return not self.is_alive and bool(self.error or self.exit_status)

    @property
    def is_at_rest(self) -> bool:
        """It does not run, and the supervisor is not about to stop or to start it."""
        return self.state in ("STOPPED", "EXITED", "FATAL")

    def restarts(self, process: Process) -> bool:
        """Whether the supervisor will start the program again by itself: see `autorestart`."""
        if self.state == "EXITED":
            return process.required or self.exit_status != 0
        return not self.is_at_rest


def config(context: StackContext, processes: Sequence[Process]) -> str:
    """The supervisor's configuration; it holds passwords, so its file is for this user only."""
    folder = context.folder
    daemon = {
        "logfile": str(folder.log_of("supervisord")),
        "logfile_maxbytes": str(LOG_BYTES_MAX),
        "logfile_backups": str(LOG_BACKUPS_MAX),
        "pidfile": str(folder / "supervisord.pid"),
        "childlogdir": str(folder / "logs"),
        "directory": str(folder.path),
    }
    if os.geteuid() == 0:
        daemon["user"] = "root"  # explicit, else it warns on each start
    sections = {
        "unix_http_server": {"file": str(folder.supervisor_socket), "chmod": "0700"},
        "rpcinterface:supervisor": {
            "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"
        },
        "supervisord": daemon,
    } | {f"program:{process.name}": program(context, process) for process in processes}
    return "\n".join(
        f"[{section}]\n" + "".join(f"{key}={escape(value)}\n" for key, value in values.items())
        for section, values in sections.items()
    )


def escape(value: str) -> str:
    """The supervisor expands `%(name)s` in every value."""
    return value.replace("%", "%%")


def program(context: StackContext, process: Process) -> dict[str, str]:
    """One section; `up` starts the programs itself, in its own order."""
    options = {
        "command": shlex.join(ignoring(process.replaced_on, process.command(context))),
        "environment": ",".join(
            f'{name}="{value}"' for name, value in process.environment(context).items()
        ),
        "stdout_logfile": str(context.folder.log_of(process.name)),
        "stdout_logfile_maxbytes": str(LOG_BYTES_MAX),
        "stdout_logfile_backups": str(LOG_BACKUPS_MAX),
        "redirect_stderr": "true",
        "autostart": "false",
        "autorestart": "true" if process.required else "unexpected",
        "startsecs": str(STEADY_SECONDS),
        "startretries": str(START_RETRIES_MAX),
        "stopsignal": process.stop_signal,
        "stopwaitsecs": str(process.stop_seconds_max),
        "stopasgroup": str(process.stop_as_group).lower(),
        "killasgroup": "true",
    }
    return options | ({"user": process.user} if process.user else {})


def ignoring(signal_name: str | None, command: Sequence[str]) -> Sequence[str]:
    """The command, unmoved by a signal until it handles it: Python starts for half a second."""
    if signal_name is None:
        return command
    return ["/bin/sh", "-c", f'trap "" {signal_name}; exec "$@"', "sh", *command]


@contextmanager
def calls(folder: RunFolder) -> Iterator[Any]:
    """A proxy for the supervisor's calls; it connects at the first one."""
    transport = SupervisorTransport(None, None, f"unix://{folder.supervisor_socket}")
    try:
        yield ServerProxy("http://127.0.0.1", transport=transport).supervisor
    finally:
        transport.close()


def programs(folder: RunFolder) -> dict[str, Program] | None:
    """Every program by name, or None when no supervisor runs."""
    try:
        with calls(folder) as supervisor:
            answers: list[dict[str, Any]] = supervisor.getAllProcessInfo()
    except (OSError, HTTPException, Fault):
        return None  # a supervisor that is shutting down answers with a fault
    return {
        answer["name"]: Program(
            name=answer["name"],
            state=answer["statename"],
            pid=answer["pid"],
            started_at_seconds=answer["start"],
            exit_status=answer["exitstatus"],
            error=answer["spawnerr"],
        )
        for answer in answers
    }


def launch(context: StackContext, processes: Sequence[Process]) -> None:
    """Start the supervisor, or let a running one take over a changed configuration.

    Raises:
        Failure: it does not answer within START_SECONDS_MAX.
    """
    folder, text = context.folder, config(context, processes)
    running = programs(folder) is not None
    if running and folder.supervisor_config.read_text() == text:
        return
    write_atomically(folder.supervisor_config, text, mode=0o600)
    if running:
        reload(folder)
        return
    folder.supervisor_socket.unlink(missing_ok=True)
    begun = subprocess.run(
        [sys.executable, "-m", "supervisor.supervisord", "-c", folder.supervisor_config],
        env={**environment(folder), **NO_TERMINAL},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,  # closed by the supervisor as soon as it goes on by itself
        text=True,
        timeout=START_SECONDS_MAX,
    )
    if begun.returncode != 0:
        lines = begun.stderr.splitlines()
        raise Failure(f"the supervisor does not start ({find_error(lines)})", details=lines)
    deadline = time.monotonic() + START_SECONDS_MAX
    while programs(folder) is None:
        if time.monotonic() > deadline:
            log = folder.log_of("supervisord")
            raise Failure(f"the supervisor does not answer: see {log}")
        time.sleep(POLL_SECONDS)


def environment(folder: RunFolder) -> Mapping[str, str]:
    """The environment that all processes inherit."""
    return inherit() | {MARK: str(folder.path), "PYTHONUNBUFFERED": "1"}


def reload(folder: RunFolder) -> None:
    """Replace the programs whose sections have changed; they are stopped until `up` starts them."""
    with calls(folder) as supervisor:
        [(added, changed, removed)] = supervisor.reloadConfig()
        for name in (*changed, *removed):
            supervisor.stopProcessGroup(name)
            supervisor.removeProcessGroup(name)
        for name in (*added, *changed):
            supervisor.addProcessGroup(name)


def start(folder: RunFolder, name: str) -> None:
    """Start a program unless it runs; a failed start shows in its state, not here."""
    try:
        with calls(folder) as supervisor:
            supervisor.startProcess(name, False)
    except Fault as fault:
        if fault.faultCode not in (Faults.ALREADY_STARTED, Faults.SPAWN_ERROR):
            raise


def stop(folder: RunFolder, name: str) -> None:
    """Ask a program to stop, without waiting for it."""
    try:
        with calls(folder) as supervisor:
            supervisor.stopProcess(name, False)
    except Fault as fault:
        if fault.faultCode not in (Faults.NOT_RUNNING, Faults.BAD_NAME):
            raise


def send_signal(folder: RunFolder, name: str, signal_name: str) -> None:
    """Send a signal, such as HUP, to a program that runs. Raises Failure if it has ended."""
    try:
        with calls(folder) as supervisor:
            supervisor.signalProcess(name, signal_name)
    except Fault as fault:
        raise Failure(f"{name} has ended ({fault.faultString}): `make up`") from fault


def supervisor_pid(folder: RunFolder) -> int:
    with calls(folder) as supervisor:
        return cast("int", supervisor.getPID())


def shut_down(folder: RunFolder) -> int:
    """Ask the supervisor to end; its process id."""
    with calls(folder) as supervisor:
        pid = cast("int", supervisor.getPID())
        supervisor.shutdown()
    return pid
