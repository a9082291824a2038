"""The relay processes of one run: started, killed, frozen, and asked to stop."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from local_stack import ports
from local_stack.stack_spec import HOST
from shared.outbox.relay_process import EXIT_FENCED
from shared.runtime.relay_notifier import RelayNotifier

SCRIPT = Path(__file__).with_name("relay_script.py")
STOP_SECONDS_MAX = 20
EXITS_EXPECTED = (0, -signal.SIGKILL, EXIT_FENCED, -signal.SIGTERM)
"""The last one is of a relay that was stopped before it had started."""


class Relays:
    """The oldest running process is the active relay, the others stand by."""

    def __init__(self, kind: str, database: str, servers: str, log: Path) -> None:
        self._kind = kind
        self._environment = os.environ | {
            "DATABASE_URL": database,
            "KAFKA_BOOTSTRAP_SERVERS": servers,
        }
        self._log = log
        self._processes: list[Process] = []
        self._relay_notifiers: list[RelayNotifier] = []

    async def start(self) -> None:
        port = ports.find_free()
        name = f"stress-relay-{len(self._processes)}"
        with self._log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, SCRIPT, self._kind, name),
                env=self._environment | {"HTTP_PORT": str(port)},
                stderr=log,
            )
        self._processes.append(process)
        self._relay_notifiers.append(RelayNotifier(f"{HOST}:{port}"))

    def notify(self) -> None:
        """Notify all of them: a standby ignores it."""
        for relay_notifier in self._relay_notifiers:
            relay_notifier.notify()

    @property
    def _running(self) -> list[Process]:
        return [process for process in self._processes if process.returncode is None]

    async def kill_active(self) -> None:
        """SIGKILL, and another one is started."""
        active = self._running[0]
        active.kill()
        await active.wait()
        await self.start()

    async def freeze_active(self) -> Process:
        """SIGSTOP, and another one is started. Returns the frozen process."""
        active = self._running[0]
        active.send_signal(signal.SIGSTOP)
        await self.start()
        return active

    async def stop(self) -> list[int]:
        """Stop all by SIGTERM, and wait. Returns the unexpected exit codes.

        Raises:
            TimeoutError: one still runs after STOP_SECONDS_MAX.
        """
        for process in self._running:
            process.terminate()
        async with asyncio.timeout(STOP_SECONDS_MAX):
            codes = [await process.wait() for process in self._processes]
        return [code for code in codes if code not in EXITS_EXPECTED]

    async def close(self) -> None:
        """Kill all processes that still run, and close the sockets."""
        for process in self._running:
            process.kill()
            await process.wait()
        for relay_notifier in self._relay_notifiers:
            relay_notifier.close()


@asynccontextmanager
async def open_relays(kind: str, database: str, servers: str, log: Path) -> AsyncIterator[Relays]:
    """One relay runs inside the block; none afterwards."""
    started = Relays(kind, database, servers, log)
    try:
        await started.start()
        yield started
    finally:
        await started.close()
