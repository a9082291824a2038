"""What a stack is made of, as values: processes, and the commands that run once before services."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from local_stack.run_folder import RunFolder
from local_stack.settings import Settings

HOST = "127.0.0.1"

READY_SECONDS_MAX = 180.0
STOP_SECONDS_MAX = 15
"""Of a process that sets no other limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackContext:
    """Where one stack runs: all that a process can need to know of the others."""

    settings: Settings
    folder: RunFolder
    ports: Mapping[str, int]
    passwords: Mapping[str, str]

    def address(self, name: str) -> str:
        """host:port"""
        return f"{HOST}:{self.ports[name]}"

    @property
    def ca_file(self) -> Path | None:
        """The certificate of the stack's authority, by which its servers are verified; None
        without TLS."""
        return self.folder.authority if self.settings.has_tls else None


class Tier(Enum):
    """Foundations start before the preparations, services after them."""

    FOUNDATION = "foundation"
    SERVICE = "service"


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port by the name under which addresses.json lists it."""

    name: str
    default: int
    scheme: str = ""

    def address(self, context: StackContext) -> str:
        return self.scheme + context.address(self.name)


Probe = Callable[[StackContext], Awaitable[None]]
"""Returns when the process does its work; raises NotReady or an OSError until then."""


async def always_ready(context: StackContext) -> None:
    """The probe of a process that is not waited for."""


async def nothing_more(context: StackContext) -> None:
    """Most processes need nothing once they are ready."""


def no_files(context: StackContext) -> None:
    """Most processes need no files of their own."""


def no_note(folder: RunFolder) -> str:
    """Most processes have nothing to report besides what a probe sees."""
    return ""


def no_variables(context: StackContext) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A long-running program.

    `prepare` writes what the program needs on disk, and `once_ready` what it needs inside; both
    run at each `up` and must be safe to repeat. An optional process is not waited for, and its
    `note` reports why it is not ready. One on request starts when `up` names it. `replaced_on` is
    the signal on which a process executes its command again, and passes its socket on.
    """

    name: str
    command: Callable[[StackContext], Sequence[str]]
    environment: Callable[[StackContext], Mapping[str, str]] = no_variables
    ports: tuple[Port, ...] = ()
    prepare: Callable[[StackContext], None] = no_files
    probe: Probe = always_ready
    once_ready: Callable[[StackContext], Awaitable[None]] = nothing_more
    tier: Tier = Tier.SERVICE
    user: str | None = None
    ready_seconds_max: float = READY_SECONDS_MAX
    stop_signal: str = "TERM"
    stop_seconds_max: int = STOP_SECONDS_MAX
    stop_as_group: bool = False
    replaced_on: str | None = None
    required: bool = True
    on_request: bool = False
    note: Callable[[RunFolder], str] = no_note


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """A command that must have succeeded before services start; safe to repeat."""

    name: str
    command: Sequence[str]
    environment: Callable[[StackContext], Mapping[str, str]]
    seconds_max: float = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A command that people run now and then, with arguments of theirs."""

    name: str
    command: Sequence[str]
    environment: Callable[[StackContext], Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackSpec:
    """A whole stack; foundations are listed in the order in which they can be relied upon."""

    processes: tuple[Process, ...]
    preparations: tuple[Preparation, ...] = field(default=())
    tools: tuple[Tool, ...] = field(default=())

    def of(self, tier: Tier) -> tuple[Process, ...]:
        return tuple(process for process in self.processes if process.tier is tier)

    @property
    def ports(self) -> tuple[Port, ...]:
        return tuple(port for process in self.processes for port in process.ports)
