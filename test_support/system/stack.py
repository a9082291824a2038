"""A system in a folder of its own, started and stopped by the commands that people type."""

import asyncio
import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import asyncpg

from fetching.settings import Settings
from local_stack.postgres import dsn
from local_stack.run_folder import RunFolder
from local_stack.status import as_found
from shared.runtime.brokers import Brokers
from test_support.system.clients import Hometown

CHECKOUT = Path(__file__).parents[2]

ORDER_TIMEOUT_SECONDS = "15"
"""Long enough for a slow machine to decide on credit, short enough to wait for."""

RECONCILE_SECONDS = "10"
"""Instead of an hour."""


@dataclass(frozen=True, slots=True)
class Stack(ABC):
    """A system on free ports. How it runs is known to its kinds alone."""

    folder: RunFolder

    way: ClassVar[str]
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
        }
        # Inside `make test`, these would make ours a part of that one.
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("MAKE")
        }
        return inherited | mine

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

    def made(self, *words: str) -> str:
        """What `make` printed; it must have ended well."""
        ended = self.make(*words)
        assert ended.returncode == 0, f"make {words}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    @property
    def settings(self) -> Settings:
        return Settings(run_dir=self.folder.path, ports="free", ports_given={})

    @property
    def brokers(self) -> Brokers:
        """Where a visitor from outside reads the topics."""
        return Brokers(self.hometown.addresses["kafka"])

    @property
    def hometown(self) -> Hometown:
        return Hometown.of_run_folder(self.folder.path)

    @property
    def cells(self) -> str:
        """The table behind the cells that are shown: nobody writes through the view."""
        [active] = self.fetch("analytics", "SELECT number FROM generations WHERE is_active")
        return f"generation_{active['number']}.cells"

    def dsn(self, role: str, database: str | None = None) -> str:
        return dsn(as_found(self.settings), role, database)

    def fetch(self, database: str, sql: str, *values: object) -> list[asyncpg.Record]:
        """What a statement gives in the database of one service."""

        async def run() -> list[asyncpg.Record]:
            connection = await asyncpg.connect(self.dsn(database))
            try:
                return await connection.fetch(sql, *values)
            finally:
                await connection.close()

        return asyncio.run(run())

    @contextmanager
    def stopped(self, *names: str) -> Iterator[None]:
        """The processes are down inside, and ready again afterwards."""
        self.stop(names)
        try:
            yield
        finally:
            self.start(names)

    @abstractmethod
    def stop(self, names: Sequence[str]) -> None:
        """Returns when they are down."""

    @abstractmethod
    def start(self, names: Sequence[str]) -> None:
        """Returns when they are ready."""

    @abstractmethod
    def kill(self, name: str) -> None:
        """kill -9; it is started again by itself."""

    @abstractmethod
    def kill_everything(self) -> None:
        """kill -9 for every process, and for what would start it again."""

    @abstractmethod
    def lives(self) -> Mapping[str, str]:
        """Of each process that runs, by its name, what is another one after each start."""

    @abstractmethod
    def bytes_of(self, name: str) -> int:
        """The memory of a process, in bytes."""

    @abstractmethod
    def logs(self) -> Mapping[str, str]:
        """All that processes have said, by their names."""

    @abstractmethod
    def told_by_the_system(self) -> str:
        """What anybody who may list processes can read of them: command lines and the like."""

    @abstractmethod
    def files_with(self, wanted: Sequence[bytes]) -> set[str]:
        """The files of all processes that hold any of these bytes, logs among them."""

    @abstractmethod
    def exported(self) -> Path:
        """The folder with the files of `make export`."""

    @abstractmethod
    def demand_jaeger(self) -> None:
        """Raises AssertionError where Jaeger will never answer."""
