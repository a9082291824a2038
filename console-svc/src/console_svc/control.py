"""What the buttons do: load, and faults of processes. Each has a bound; outcomes are kept.

One load and one fault run at a time: a relay that is killed under load is what there is to see.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import httpx

from console_svc.catalog import CONSOLE, KAFKA, Entry
from console_svc.orders import LOAD_PER_SECOND, LOAD_SECONDS, CallFailed, Load, Shop
from console_svc.stack import NoControl, Stack

BACK_SECONDS_MAX = 120.0
"""Until a process that was killed is ready again."""
DOWN_SECONDS_MAX = 40.0
"""Until a process that was asked to stop has ended."""
BROKER_STOPPED_SECONDS = 10.0
ACTIONS_MAX = 12
"""That are kept."""
POLL_SECONDS = 0.25
PROBE_SECONDS_MAX = 1.0

Kind = Literal["load", "fault"]

log = logging.getLogger(__name__)


class Busy(Exception):
    """Another action of this kind runs; the text names it."""


class NotThere(Exception):
    """There is no such process, or it is not to be killed from here."""


@dataclass(slots=True, kw_only=True)
class Action:
    """What was done, when, and what came of it."""

    kind: Kind
    title: str
    began_at: datetime
    describe: Callable[[], str] = field(default=lambda: "")
    ended_at: datetime | None = None
    has_failed: bool = False

    @property
    def is_running(self) -> bool:
        return self.ended_at is None

    @property
    def outcome(self) -> str:
        return self.describe()


Outcome = Callable[[str], None]
"""Reports how far an action is."""


class Control:
    """Begins actions and remembers the last ones; all end with the process."""

    def __init__(self, stack: Stack, shop: Shop, client: httpx.AsyncClient) -> None:
        self._stack = stack
        self._shop = shop
        self._client = client
        self._recent: deque[Action] = deque(maxlen=ACTIONS_MAX)
        self._tasks: dict[Kind, asyncio.Task[None]] = {}

    @property
    def recent(self) -> Sequence[Action]:
        """The newest first."""
        return list(reversed(self._recent))

    def find_running(self, kind: Kind) -> Action | None:
        return next((each for each in self._recent if each.kind == kind and each.is_running), None)

    def begin_load(self) -> None:
        """Raises Busy."""
        load = Load()

        async def run(report: Outcome) -> None:
            await self._shop.send_load(load)

        title = f"load: {LOAD_PER_SECOND} orders/s for {LOAD_SECONDS} s"
        self._begin("load", title, run).describe = load.describe

    def begin_kill(self, name: str) -> None:
        """kill -9; the supervisor restarts it. Raises Busy, NotThere, NoControl."""
        entry = self._find(name)

        async def run(report: Outcome) -> None:
            before = (await self._read_programs())[name].pid
            began = time.monotonic()
            await asyncio.to_thread(self._stack.kill, name)
            report("down")
            while True:
                program = (await self._read_programs()).get(name)
                if program and program.pid not in (None, before) and await self._is_ready(entry):
                    break
                demand_time(began, BACK_SECONDS_MAX, f"{name} is not ready")
                await asyncio.sleep(POLL_SECONDS)
            report(f"back after {time.monotonic() - began:.1f} s")

        self._begin("fault", f"{name} killed", run)

    def begin_broker_stop(self) -> None:
        """Stop the broker for a while; it is started whatever happens. Raises Busy, NoControl."""
        if not self._stack.can_control:
            raise NoControl(self._stack.get_command("stop", KAFKA))

        async def run(report: Outcome) -> None:
            began = time.monotonic()
            try:
                await asyncio.to_thread(self._stack.stop, KAFKA)
                report("stopping")
                while (await self._read_programs())[KAFKA].state not in ("STOPPED", "EXITED"):
                    demand_time(began, DOWN_SECONDS_MAX, "the broker has not stopped")
                    await asyncio.sleep(POLL_SECONDS)
                report("down")
                await asyncio.sleep(BROKER_STOPPED_SECONDS)
            finally:
                self._stack.start(KAFKA)  # also when the console itself stops now
            report("starting")
            started = time.monotonic()
            while (await self._read_programs())[KAFKA].state != "RUNNING":
                demand_time(started, BACK_SECONDS_MAX, "the broker does not start")
                await asyncio.sleep(POLL_SECONDS)
            report(f"back, {time.monotonic() - began:.1f} s after its stop")

        self._begin("fault", f"broker stopped for {BROKER_STOPPED_SECONDS:.0f} s", run)

    async def close(self) -> None:
        """End what runs."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _begin(
        self, kind: Kind, title: str, run: Callable[[Outcome], Coroutine[Any, Any, None]]
    ) -> Action:
        if (running := self.find_running(kind)) is not None:
            raise Busy(f"one {kind} at a time: {running.title}")
        action = Action(kind=kind, title=title, began_at=datetime.now(UTC))
        self._recent.append(action)
        self._tasks[kind] = asyncio.create_task(self._run(action, run))
        return action

    async def _run(
        self, action: Action, run: Callable[[Outcome], Coroutine[Any, Any, None]]
    ) -> None:
        def report(text: str) -> None:
            action.describe = lambda: text

        try:
            await run(report)
        except (CallFailed, NoControl, TimeoutError) as error:
            action.has_failed = True
            report(str(error))
        except Exception as error:
            action.has_failed = True
            report(f"failed: {type(error).__name__}")
            log.exception("an action failed: %s", action.title)
        finally:
            action.ended_at = datetime.now(UTC)

    def _find(self, name: str) -> Entry:
        if not self._stack.can_control:
            raise NoControl(self._stack.get_command("kill", name))
        for entry in self._stack.entries:
            if entry.name == name and can_be_killed(entry):
                return entry
        raise NotThere(f"{name} cannot be killed from here")

    async def _read_programs(self) -> Any:
        return await asyncio.to_thread(self._stack.read_programs)

    async def _is_ready(self, entry: Entry) -> bool:
        try:
            response = await self._client.get(
                f"{entry.url}/health/ready", timeout=PROBE_SECONDS_MAX
            )
        except httpx.HTTPError:
            return False
        return response.is_success


def can_be_killed(entry: Entry) -> bool:
    """Every process of a service but the console, which would lose what it has to report."""
    return entry.kind != "server" and entry.name != CONSOLE


def demand_time(began: float, seconds_max: float, what: str) -> None:
    """Raises TimeoutError."""
    if time.monotonic() - began > seconds_max:
        raise TimeoutError(f"{what} after {seconds_max:.0f} s: `make status` shows why")
