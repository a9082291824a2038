"""The stack of a drill: what can be done to it, and what it holds."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import asyncpg
import httpx
import psutil

from fetching.errors import Failure
from local_stack import ports
from local_stack.down import down
from local_stack.hometown import HOMETOWN
from local_stack.postgres import dsn
from local_stack.progress import Tone, tell
from local_stack.replacing import replace as replace_process
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.stack_spec import StackSpec
from local_stack.status import as_found
from local_stack.supervision import Program, programs
from local_stack.testing import new_folder, sweep
from local_stack.tools import process_called, stopped
from local_stack.up import up
from test_support.system.clients import Hometown, Json, sum_lag
from verification import audit
from verification.drill.ledger import Finding, Ledger, Stored, compare
from verification.drill.small_disk import discard_small_disk, move_to_small_disk

DRILLED = replace(
    HOMETOWN, processes=tuple(each for each in HOMETOWN.processes if each.name != "jaeger")
)
"""Everything that the data pass through."""
JOB = "analytics-job"
SMALL_DISKS = {"postgres": "postgres/data", "kafka": "kafka/data", JOB: "spark/checkpoint"}
"""The processes whose disks can be full, and where their data are; each needs those before it."""
CHECKS: Mapping[str, Sequence[str]] = {
    "audit": ("verification.audit",),
    "check-cells": ("verification.differential.check_cells",),
    "reconcile": ("local_stack", "run", "analytics", "reconcile", "--hours", "24"),
}
"""Verbs that verify a running stack, and their modules."""
CHECK_SECONDS_MAX = 120
UNCHANGED_SECONDS_MAX = 45
"""After this time without a change, a difference is permanent."""
SETTLE_POLL_SECONDS = 0.5
READY_SECONDS_MAX, READY_POLL_SECONDS = 60, 0.1
STOP_SECONDS_MAX = 30

MOVES = "SELECT stream_id, count(*) FROM events WHERE type = 'user-moved' GROUP BY stream_id"


@dataclass(frozen=True, slots=True)
class DrilledStack:
    """A stack in a folder of its own, on free ports."""

    folder: RunFolder
    spec: StackSpec = DRILLED
    unchanged_seconds_max: float = UNCHANGED_SECONDS_MAX

    @property
    def counts(self) -> bool:
        """Whether the job is a part of it."""
        return any(each.name == JOB for each in self.spec.processes)

    @property
    def settings(self) -> Settings:
        return Settings(
            HOMETOWN_IN="processes", run_dir=self.folder.path, ports="free", ports_given={}
        )

    @property
    def hometown(self) -> Hometown:
        return Hometown.of_run_folder(self.folder.path)

    @property
    def programs(self) -> Mapping[str, Program]:
        return programs(self.folder) or {}

    def up(self, spec: StackSpec | None = None) -> None:
        """Run all processes as `spec` describes them, by default as this checkout does; those that
        it describes in another way are stopped and started."""
        up(spec or self.spec, self.settings)

    def destroy(self) -> None:
        """Nothing of it runs, and nothing of it is left."""
        down(self.spec, self.folder)
        for data in SMALL_DISKS.values():
            discard_small_disk(self.folder / data)
        self.folder.remove()

    def replace(self, name: str) -> None:
        replace_process(self.spec, self.settings, name)

    def kill(self, name: str) -> None:
        """kill -9; the supervisor starts it again."""
        psutil.Process(self.programs[name].pid).kill()

    def move_to_small_disks(self) -> None:
        """Give the data of these processes disks with little room, until the stack is destroyed;
        the processes are stopped while the data are moved. Raises NoSmallDisk."""
        folders = [self.folder / data for data in SMALL_DISKS.values()]
        if all(folder.is_mount() for folder in folders):
            return
        with ExitStack() as processes:
            for name in reversed(SMALL_DISKS):
                process = process_called(self.spec, name)
                processes.enter_context(stopped(as_found(self.settings), process))
            for folder in folders:
                move_to_small_disk(folder)

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """All processes of a program get no time inside."""
        parent = psutil.Process(self.programs[name].pid)
        family = [parent, *parent.children(recursive=True)]
        try:
            for process in family:
                process.suspend()
            yield
        finally:
            for process in family:
                if process.is_running():
                    process.resume()

    @contextmanager
    def joined(self, name: str) -> Iterator[None]:
        """A second process of a program, in the same consumer group; it is ready inside.

        Raises:
            Failure: it was not ready in time, or ended in another way than it was asked to.
        """
        first = psutil.Process(self.programs[name].pid)
        port = ports.find_free()
        with (self.folder / f"second-{name}.log").open("ab") as log:
            second = subprocess.Popen(
                first.cmdline(),
                cwd=first.cwd(),
                env=first.environ() | {"HTTP_PORT": str(port)},
                stderr=log,
            )
        try:
            wait_until_ready(f"http://127.0.0.1:{port}/health/ready", name)
            yield
        finally:
            second.terminate()
            status = second.wait(STOP_SECONDS_MAX)
        if status:
            raise Failure(f"the second {name} ended with status {status}")

    async def read(self) -> Stored:
        """What is recorded and counted now. Raises OSError, asyncpg.PostgresError."""
        context = as_found(self.settings)
        books = await audit.audit(dsn(context, "users"), dsn(context, "orders"))
        users = await asyncpg.connect(dsn(context, "users"))
        try:
            moves = await users.fetch(MOVES)
        finally:
            await users.close()
        status = await asyncio.to_thread(self._read_status)
        return Stored(
            orders={str(order): each.types for order, each in books.orders.items()},
            moves={str(user): number for user, number in moves},
            counted=status["orders_counted"] + status["late_orders"] if self.counts else None,
            is_idle=not self.counts or sum_lag(status) == 0,
            unbalanced=list(audit.findings(books)),
        )

    def _read_status(self) -> Json:
        hometown = self.hometown
        with hometown.http:
            return hometown.status()

    async def settle(self, ledger: Ledger) -> list[Finding]:
        """What is lost or there twice when everything is decided and counted, or when nothing
        has changed for `unchanged_seconds_max`."""
        last, changed_at = None, time.monotonic()
        while time.monotonic() < changed_at + self.unchanged_seconds_max:
            try:
                stored = await self.read()
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, httpx.HTTPError):
                stored = None
            if stored != last:
                last, changed_at = stored, time.monotonic()
            if stored is not None and stored.is_idle and not compare(ledger, stored):
                return []
            await asyncio.sleep(SETTLE_POLL_SECONDS)
        if last is None:
            raise Failure("the event stores or analytics cannot be read")
        found = compare(ledger, last)
        ledger.adopt(last)
        return found

    def check(self) -> Iterator[str]:
        """A line for each verb that finds something wrong."""
        environment = os.environ | {"HOMETOWN_RUN_DIR": str(self.folder.path)}
        for verb, module in CHECKS.items():
            ended = subprocess.run(
                [sys.executable, "-m", *module],
                env=environment,
                capture_output=True,
                text=True,
                timeout=CHECK_SECONDS_MAX,
                check=False,
            )
            last = (ended.stdout + ended.stderr).strip().splitlines()[-1:]
            tell(f"{verb:<16} {''.join(last)}", Tone.BAD if ended.returncode else Tone.GOOD)
            if ended.returncode:
                yield f"{verb}: {''.join(last)}"


def wait_until_ready(url: str, name: str) -> None:
    """Raises Failure: it is not ready in time."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            if httpx.get(url, trust_env=False).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(READY_POLL_SECONDS)
    raise Failure(f"the second {name} was not ready after {READY_SECONDS_MAX} s")


@contextmanager
def drilled_stack(spec: StackSpec = DRILLED) -> Iterator[DrilledStack]:
    """Everything is up inside, and gone afterwards."""
    sweep()
    stack = DrilledStack(RunFolder(new_folder()), spec)
    try:
        stack.up()
        yield stack
    finally:
        stack.destroy()
