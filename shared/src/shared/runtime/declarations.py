"""What the services declare, each in its `service.toml`: processes, topics, database, scopes.

All that lists services, topics or scopes reads it from here.
`python -m shared.runtime.declarations` prints the names of the services with an event store.
"""

import os
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

FILE = "service.toml"
CHECKOUT = Path(__file__).parents[4]
"""Where the folders of services are, for a package that is installed as editable."""

ALL = "all"
"""The scope of callers that are not limited to what is their own; it belongs to no service."""

API, RELAY = "api", "relay"
"""The commands that other processes of a stack have to find."""

STRICT = ConfigDict(extra="forbid")


def store_url(database: str) -> str:
    """The name of the setting with the address of a database, for a process that reads others'."""
    return f"{database}_store_url"


class DeclarationError(Exception):
    """A declaration is malformed, or does not fit the others; the message is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process: `python -m <package> <command>`."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    command: str
    name: str
    """By default `<service>-<command>`. It is also its consumer group and its user of Kafka."""
    port: int = Field(ge=1, le=65535)
    """Where it listens on one machine, unless another port is chosen there."""
    public: bool = False
    """Whether callers outside of a stack of containers reach it."""
    profile: str | None = None
    """It starts on request alone, in containers by this profile."""
    response_minutes_max: int | None = None
    """How long a response can take; None: as long as the proxy waits by default."""
    notifies: bool = False
    """Whether its commits notify the relay of its service (RELAY_ADDRESS)."""
    calls: tuple[str, ...] = ()
    """Services whose API it calls; it gets the address of `notes` as NOTES_URL."""
    needs: tuple[str, ...] = ()
    """What only some processes get; `local_stack.needs` has all words."""
    settings: tuple[str, ...] = ()
    """Environment variables that are handed on to its container."""
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    """Topics; each that it reads has a dead letter topic for it."""
    views: tuple[str, ...] = ()
    """Modules whose VIEWS are pairs: a topic of another service, and the codec that reads it."""
    describes: tuple[str, ...] = ()
    """Topics of which it asks for the ends and nothing else."""
    stores_offsets: bool = False
    """Whether it is no consumer group: the database of its service has its offsets, and shows them
    by the views `consumer_positions` and `consumer_progress`."""
    observes: bool = False
    """Whether it asks for the ends of all topics, and for the offsets of all groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """The commands of a service that run to their end, as the owner of its database."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A database with the name of its service, and the role of that name."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    event_store: bool = False
    """With a relay, the tools rebuild and replay; the role of the reconciler reads it."""
    temporary_tables: bool = False
    """Whether the service can create temporary tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic with the public events of its service. `types` are all event types in it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: str
    partitions: int = Field(ge=1)
    types: tuple[str, ...]
    key: str
    """The field of each event that is the key of its record."""
    contract: str
    """The module whose CODEC has the classes of these types; next to it is the module `events`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """A topic that only its service writes and reads."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: str
    partitions: int = Field(ge=1)
    compacted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a token can allow; `roles` of the development issuer have it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: str
    allows: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One `service.toml`; `folder` is the name of the folder that it is in."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    folder: str
    name: str
    package: str
    processes: Mapping[str, Process] = Field(min_length=1)
    tool: Tool = field(default_factory=Tool)
    database: Database | None = None
    topics: Mapping[str, Topic] = field(default_factory=dict)
    internal_topics: Mapping[str, InternalTopic] = field(default_factory=dict)
    scopes: Mapping[str, Scope] = field(default_factory=dict)

    @property
    def has_event_store(self) -> bool:
        return self.database is not None and self.database.event_store

    @property
    def first_port(self) -> int:
        return min(process.port for process in self.processes.values())

    def process_name(self, command: str) -> str:
        return self.processes[command].name


@dataclass(frozen=True, slots=True, kw_only=True)
class Declarations:
    """All services, in the order of their ports."""

    services: tuple[Service, ...]

    @property
    def processes(self) -> tuple[Process, ...]:
        return tuple(each for service in self.services for each in service.processes.values())

    @property
    def topics(self) -> Mapping[str, Topic]:
        return {name: each for service in self.services for name, each in service.topics.items()}

    @property
    def internal_topics(self) -> Mapping[str, InternalTopic]:
        return {
            name: each
            for service in self.services
            for name, each in service.internal_topics.items()
        }

    @property
    def scopes(self) -> Mapping[str, Scope]:
        return {name: each for service in self.services for name, each in service.scopes.items()}

    @property
    def databases(self) -> tuple[str, ...]:
        """Names of the services that have one."""
        return tuple(service.name for service in self.services if service.database is not None)

    @property
    def event_stores(self) -> tuple[str, ...]:
        """Names of the services whose database has an event store."""
        return tuple(service.name for service in self.services if service.has_event_store)

    def service(self, name: str) -> Service:
        """Raises KeyError if there is none."""
        return {service.name: service for service in self.services}[name]

    def names_of(self, command: str) -> tuple[str, ...]:
        """Names of the processes with a command, such as `relay`, that start with the others."""
        return tuple(
            process.name
            for service in self.services
            for each, process in service.processes.items()
            if each == command and process.profile is None
        )

    def readers(self, topic: str) -> tuple[str, ...]:
        """Names of the processes that read a topic."""
        return tuple(process.name for process in self.processes if topic in process.reads)

    def consumers_in(self, database: str) -> tuple[str, ...]:
        """Names of the processes whose offsets are in a database."""
        processes = self.service(database).processes.values()
        return tuple(process.name for process in processes if process.stores_offsets)


SERVICE = TypeAdapter(Service)


def services_dir() -> Path:
    """Where the folders of services are: SERVICES_DIR, or else this checkout."""
    return Path(os.environ.get("SERVICES_DIR") or CHECKOUT)


@cache
def load_declarations(folder: Path | None = None) -> Declarations:
    """Read the `service.toml` of each folder in `folder`, by default in `services_dir()`.

    Raises:
        DeclarationError: there is none, one is malformed, or two contradict each other.
    """
    root = folder or services_dir()
    services = [load_service(path) for path in sorted(root.glob(f"*/{FILE}"))]
    if not services:
        raise DeclarationError(f"{root} has no folder with a {FILE}: set SERVICES_DIR")
    services.sort(key=lambda service: service.first_port)
    declarations = Declarations(services=tuple(services))
    for problem in contradictions(declarations):
        raise DeclarationError(problem)
    return declarations


def load_service(path: Path) -> Service:
    """Raises DeclarationError."""
    where = f"{path.parent.name}/{path.name}"
    try:
        return SERVICE.validate_python(
            with_names(tomllib.loads(path.read_text()), path.parent.name)
        )
    except tomllib.TOMLDecodeError as error:
        raise DeclarationError(f"{where}: {error}") from None
    except ValidationError as error:
        raise DeclarationError(f"{where}: {first_problem(error)}") from None


def with_names(content: dict[str, Any], folder: str) -> dict[str, Any]:
    """The content of a file, with each key repeated as the name of its value."""
    named: dict[str, Any] = {**content, "folder": folder}
    if isinstance(processes := content.get("processes"), dict):
        named["processes"] = {
            command: {"name": f"{content.get('name')}-{command}", **entry, "command": command}
            if isinstance(entry, dict)
            else entry
            for command, entry in processes.items()
        }
    for table in ("topics", "internal_topics", "scopes"):
        if isinstance(entries := content.get(table), dict):
            named[table] = {
                name: {**entry, "name": name} if isinstance(entry, dict) else entry
                for name, entry in entries.items()
            }
    return named


def first_problem(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    unknown = first["type"] == "unexpected_keyword_argument"
    return f"{where}: {'unknown key' if unknown else first['msg']}"


def contradictions(declarations: Declarations) -> Iterator[str]:
    """One line for each thing that is declared twice, or named and declared nowhere."""
    services, processes = declarations.services, declarations.processes
    yield from repeated("name of a service", (service.name for service in services))
    yield from repeated("name of a process", (process.name for process in processes))
    yield from repeated("port", (process.port for process in processes))
    yield from repeated(
        "topic",
        (name for service in services for name in (*service.topics, *service.internal_topics)),
    )
    yield from repeated("scope", (name for service in services for name in service.scopes))
    for service in services:
        for process in service.processes.values():
            yield from dangling(declarations, service, process)
        if service.has_event_store and RELAY not in service.processes:
            yield f"{service.folder}: event_store needs a process {RELAY}"


def repeated(what: str, values: Iterable[object]) -> Iterator[str]:
    for value, times in Counter(values).items():
        if times > 1:
            yield f"{what} declared {times} times: {value}"


def dangling(declarations: Declarations, service: Service, process: Process) -> Iterator[str]:
    """One line for each thing that a process names and no declaration has."""
    for topic in process.writes:
        if topic not in service.topics:
            yield f"{process.name} writes {topic}, which is no topic of its service"
    for topic in (*process.reads, *process.describes):
        if topic not in declarations.topics:
            yield f"{process.name} reads {topic}, which no service declares"
    for name in process.calls:
        if name not in {each.name for each in declarations.services if API in each.processes}:
            yield f"{process.name} calls {name}, and no service of that name has a process {API}"
    if process.notifies and RELAY not in service.processes:
        yield f"{process.name} notifies a relay, and its service has no process {RELAY}"
    if process.stores_offsets and service.database is None:
        yield f"{process.name} stores offsets, and its service has no database"


if __name__ == "__main__":
    sys.stdout.write("".join(f"{name}\n" for name in load_declarations().event_stores))
