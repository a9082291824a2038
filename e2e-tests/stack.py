"""A system in a folder of its own, started and stopped by the commands that people type."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import asyncpg
import httpx
import psutil

from clients import Hometown
from embedded import supervision
from embedded.postgres import dsn
from embedded.run_folder import RunFolder
from embedded.settings import Settings
from embedded.status import as_found
from eventually import eventually

CHECKOUT = Path(__file__).parent.parent

ORDER_TIMEOUT_SECONDS = "15"
"""Long enough for a slow machine to decide on credit, short enough to wait for."""

RECONCILE_SECONDS = "10"
"""Instead of an hour."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A system in a folder of its own, on free ports."""

    folder: RunFolder

    @property
    def variables(self) -> dict[str, str]:
        """The environment of commands for this stack."""
        mine = {
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
    def hometown(self) -> Hometown:
        return Hometown.of_run_folder(self.folder.path)

    def kill(self, name: str) -> None:
        """kill -9; the supervisor starts it again."""
        programs = supervision.programs(self.folder) or {}
        if programs[name].pid:
            with suppress(psutil.NoSuchProcess):  # it has just ended by itself
                psutil.Process(programs[name].pid).kill()

    @contextmanager
    def stopped(self, *names: str) -> Iterator[None]:
        """The processes are down inside."""

        def states() -> set[str]:
            programs = supervision.programs(self.folder) or {}
            return {programs[name].state for name in names}

        for name in names:
            supervision.stop(self.folder, name)
        eventually(states, lambda seen: seen <= {"STOPPED", "EXITED"}, what=f"{names} stopped")
        try:
            yield
        finally:
            for name in names:
                supervision.start(self.folder, name)
            for name in names:
                eventually(partial(self._is_ready, name), bool, what=f"{name} ready again")

    def _is_ready(self, name: str) -> bool:
        address = json.loads(self.folder.addresses.read_text())[name]
        return httpx.get(f"{address}/health/ready").is_success

    @property
    def cells(self) -> str:
        """The table behind the cells that are shown: nobody writes through the view."""
        [active] = self.fetch("analytics", "SELECT number FROM generations WHERE is_active")
        return f"generation_{active['number']}.cells"

    def fetch(self, database: str, sql: str, *values: object) -> list[asyncpg.Record]:
        """What a statement gives in the database of one service."""
        settings = Settings(run_dir=self.folder.path, ports="free", ports_given={})

        async def run() -> list[asyncpg.Record]:
            connection = await asyncpg.connect(dsn(as_found(settings), database))
            try:
                return await connection.fetch(sql, *values)
            finally:
                await connection.close()

        return asyncio.run(run())


@dataclass(frozen=True, slots=True)
class ShownStack(Stack):
    """A stack after `make demo`."""

    first_demo: str
    """What the demonstration printed on the fresh system."""
