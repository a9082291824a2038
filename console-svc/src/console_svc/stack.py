"""The stack around the console: where its processes are, and what can be done to them.

Processes of this machine are killed, stopped and started through their supervisor. In containers
there is no such way: the page shows the commands.
"""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

import asyncpg

from console_svc.catalog import CONSOLE, JAEGER, Entry, list_entries
from console_svc.resources import Program
from console_svc.settings import ConsoleSettings
from local_stack import supervision
from local_stack.postgres import dsn
from local_stack.readiness import last_lines
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.status import as_found
from shared.inbox import parked
from shared.runtime import postgres
from shared.runtime.declarations import load_declarations
from shared.runtime.logs import to_text

DATABASE_SECONDS_MAX = 2.0
CONTAINER_PORT = 8000


class NoControl(Exception):
    """The console cannot do this here; the text is what to run instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """A parked stream, and the command that lists it with its messages."""

    consumer: str
    stream_id: str
    topic: str
    reason: str
    parked_at: datetime
    waiting: int


class Stack(Protocol):
    """What the console can see of a stack besides metrics, and do to it."""

    entries: Sequence[Entry]
    can_control: bool

    def read_programs(self) -> Mapping[str, Program]:
        """What the supervisor knows of each process."""
        ...

    def read_log(self, name: str, lines_max: int) -> Sequence[str]:
        """The last lines of a process."""
        ...

    def kill(self, name: str) -> None:
        """kill -9. Raises NoControl."""
        ...

    def stop(self, name: str) -> None:
        """Begin to stop a process. Raises NoControl."""
        ...

    def start(self, name: str) -> None:
        """Start a process that is stopped. Raises NoControl."""
        ...

    def get_command(self, action: str, name: str) -> str:
        """What a developer can run instead, such as `docker compose kill notes-relay`."""
        ...

    async def list_parked(self, consumers: Mapping[str, Collection[str]]) -> Sequence[Parked]:
        """The parked streams of consumers, which are given by their database."""
        ...


class ProcessStack:
    """Processes of this machine, under the supervisor whose files are in a run folder."""

    can_control = True

    def __init__(self, run_dir: Path) -> None:
        self._folder = RunFolder(run_dir)
        addresses: dict[str, str] = json.loads(self._folder.addresses.read_text())
        self.entries: Sequence[Entry] = list_entries(load_declarations(), addresses, addresses)

    def read_programs(self) -> Mapping[str, Program]:
        found = supervision.programs(self._folder) or {}
        now = time.time()
        return {
            name: Program(
                state=each.state,
                pid=each.pid or None,
                uptime_seconds=max(0, int(now) - each.started_at_seconds) if each.pid else None,
            )
            for name, each in found.items()
        }

    def read_log(self, name: str, lines_max: int) -> Sequence[str]:
        lines = last_lines(self._folder.log_of(name), lines_max)
        return [to_text(line, colors=False) for line in lines]

    def kill(self, name: str) -> None:
        if self.read_programs()[name].pid is None:
            raise NoControl(f"{name} does not run")
        supervision.kill(self._folder, name)

    def stop(self, name: str) -> None:
        supervision.stop(self._folder, name)

    def start(self, name: str) -> None:
        supervision.start(self._folder, name)

    def get_command(self, action: str, name: str) -> str:
        return f"kill -9 {self.read_programs()[name].pid}"

    async def list_parked(self, consumers: Mapping[str, Collection[str]]) -> Sequence[Parked]:
        context = as_found(Settings(run_dir=self._folder.path))
        found: list[Parked] = []
        for database, names in consumers.items():
            try:
                found += await read_parked(dsn(context, database), names)
            except (*postgres.UNAVAILABLE, asyncpg.PostgresError):
                continue  # the road shows that the database is down
        return found


async def read_parked(address: str, consumers: Collection[str]) -> list[Parked]:
    connection = await asyncpg.connect(address, timeout=DATABASE_SECONDS_MAX)
    try:
        return [
            Parked(
                consumer=consumer,
                stream_id=str(each.stream_id),
                topic=each.topic,
                reason=each.reason,
                parked_at=each.parked_at,
                waiting=each.waiting,
            )
            for consumer in consumers
            for each in await parked.list_streams(connection, consumer)
        ]
    finally:
        await connection.close()


class ContainerStack:
    """Containers: the console is one of them, and has no rights on the engine."""

    can_control = False

    def __init__(self, public_addresses: Mapping[str, str], scheme: str) -> None:
        declared = load_declarations()
        urls = {
            each.name: f"{scheme if each.public else 'http'}://{each.name}:{CONTAINER_PORT}"
            for each in declared.processes
        }
        urls[CONSOLE] = f"{scheme}://127.0.0.1:{CONTAINER_PORT}"
        urls[JAEGER] = "http://jaeger:16686"
        self.entries: Sequence[Entry] = list_entries(declared, urls, public_addresses)

    def read_programs(self) -> Mapping[str, Program]:
        return {}

    def read_log(self, name: str, lines_max: int) -> Sequence[str]:
        return [f"docker compose logs --tail {lines_max} {name}"]

    def kill(self, name: str) -> None:
        raise NoControl(self.get_command("kill", name))

    def stop(self, name: str) -> None:
        raise NoControl(self.get_command("stop", name))

    def start(self, name: str) -> None:
        raise NoControl(self.get_command("start", name))

    def get_command(self, action: str, name: str) -> str:
        return f"docker compose {action} {name}"

    async def list_parked(self, consumers: Mapping[str, Collection[str]]) -> Sequence[Parked]:
        return []


def find_stack(settings: ConsoleSettings) -> Stack:
    """The stack that the console was started in."""
    if settings.run_dir is not None:
        return ProcessStack(settings.run_dir)
    scheme = "https" if settings.http_certificate_file else "http"
    return ContainerStack(settings.public_addresses, scheme)
