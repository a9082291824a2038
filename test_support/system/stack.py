"""A stack in a folder of its own, started and stopped by the commands of the Makefile."""

import asyncio
import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import asyncpg

from local_stack.postgres import dsn
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings, Way
from local_stack.status import as_found
from shared.runtime.brokers import Brokers
from test_support.exposed_metrics import parse
from test_support.system.clients import Hometown

CHECKOUT = Path(__file__).parents[2]

ORDER_TIMEOUT_SECONDS = "30"
"""Long enough for a slow machine to decide on credit, short enough to wait for."""

RECONCILE_SECONDS = "10"
"""Instead of an hour."""

OBSERVE_SECONDS = "1"
"""Instead of three."""


@dataclass(frozen=True, slots=True)
class Stack(ABC):
    """A stack on free ports. Subclasses know how it runs."""

    folder: RunFolder
    foreign: Mapping[str, str] = field(default_factory=dict)
    """Variables of other programs in the environment of its commands."""

    way: ClassVar[Way]
    """As in `make up in=containers`."""

    @property
    def variables(self) -> dict[str, str]:
        """The environment of commands for this stack."""
        mine = {
            "in": self.way,
            "HOMETOWN_RUN_DIR": str(self.folder.path),
            "HOMETOWN_PORTS": "free",
            "ORDER_TIMEOUT_SECONDS": ORDER_TIMEOUT_SECONDS,
            "RECONCILE_SECONDS": RECONCILE_SECONDS,
            "OBSERVE_SECONDS": OBSERVE_SECONDS,
        }
        # Inside `make test`, these would make the inner make a part of the outer one.
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("MAKE")
        }
        return {**inherited, **self.foreign, **mine}

    def make(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`make` with these words, for this stack."""
        return subprocess.run(
            ["make", "--no-print-directory", "-C", CHECKOUT, *words],
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def make_output(self, *words: str) -> str:
        """Run `make`, which must succeed, and return what it prints."""
        ended = self.make(*words)
        assert ended.returncode == 0, f"make {words}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    @property
    def settings(self) -> Settings:
        return Settings(
            HOMETOWN_IN=self.way, run_dir=self.folder.path, ports="free", ports_given={}
        )

    @property
    def brokers(self) -> Brokers:
        """The address and login with which a client outside of the stack reads the topics."""
        return Brokers(self.hometown.addresses["kafka"])

    @property
    def hometown(self) -> Hometown:
        return Hometown.of_run_folder(self.folder.path)

    @property
    def cells(self) -> str:
        """The table behind the active cells: the view is read-only."""
        [active] = self.fetch("analytics", "SELECT number FROM generations WHERE is_active")
        return f"generation_{active['number']}.cells"

    def dsn(self, role: str, database: str | None = None) -> str:
        return dsn(as_found(self.settings), role, database)

    def fetch(self, database: str, sql: str, *values: object) -> list[asyncpg.Record]:
        """Run a statement in the database of one service, and return its rows."""

        async def run() -> list[asyncpg.Record]:
            connection = await asyncpg.connect(self.dsn(database))
            try:
                return await connection.fetch(sql, *values)
            finally:
                await connection.close()

        return asyncio.run(run())

    @contextmanager
    def stopped(self, *names: str) -> Iterator[None]:
        """Stop the processes inside the block, and wait until they are ready again after it."""
        self.stop(names)
        try:
            yield
        finally:
            self.start(names)

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """A process gets no time inside the block, and does not know that."""
        self.freeze(name)
        try:
            yield
        finally:
            self.thaw(name)

    @abstractmethod
    def freeze(self, name: str) -> None: ...

    @abstractmethod
    def thaw(self, name: str) -> None: ...

    @abstractmethod
    def stop(self, names: Sequence[str]) -> None:
        """Returns when they are down."""

    @abstractmethod
    def start(self, names: Sequence[str]) -> None:
        """Returns when they are ready."""

    @abstractmethod
    def kill(self, name: str) -> None:
        """kill -9; the supervisor restarts it."""

    @abstractmethod
    def kill_everything(self) -> None:
        """kill -9 for every process, and for the supervisor that would restart it."""

    @abstractmethod
    def lives(self) -> Mapping[str, str]:
        """For each running process, by its name, an identity that changes with each start."""

    @abstractmethod
    def memory_bytes(self, name: str) -> int:
        """The memory of a process, in bytes."""

    @abstractmethod
    def read_metrics(self, name: str) -> str:
        """Read what a process exposes at /metrics. Raises httpx.HTTPError."""

    def read_series(self, name: str, series: str, **labels: str) -> list[float]:
        """Read the values of the series of a process with these labels."""
        return [
            each.value
            for each in parse(self.read_metrics(name))
            if each.series == series and labels.items() <= each.labels.items()
        ]

    @abstractmethod
    def logs(self) -> Mapping[str, str]:
        """The logs of all processes, by their names."""

    @abstractmethod
    def process_listing(self) -> str:
        """What a list of processes shows to every user of the machine, such as command lines."""

    @abstractmethod
    def files_with(self, wanted: Sequence[bytes]) -> set[str]:
        """The files of all processes that contain any of these bytes, including logs."""

    @abstractmethod
    def exported(self) -> Path:
        """The folder with the files of `make export`."""

    @abstractmethod
    def demand_jaeger(self) -> None:
        """Raises AssertionError if Jaeger will never respond."""
