"""For the console: real HTTP servers that stand for processes, and their supervisor."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from console_svc.catalog import Entry
from console_svc.resources import Program
from console_svc.stack import Parked

METRICS = 'hometown_append_events_total{{category="note"}} {events}\n'


@dataclass(slots=True)
class Peer:
    """A process: what it exposes, also `more` than events, and whether it is ready."""

    events: float = 0
    is_ready: bool = True
    scrapes: int = 0
    more: str = ""
    delay_seconds: float = 0

    def create_app(self) -> Starlette:
        async def expose(request: Request) -> Response:
            self.scrapes += 1
            await asyncio.sleep(self.delay_seconds)
            return PlainTextResponse(METRICS.format(events=self.events) + self.more)

        async def ready(request: Request) -> Response:
            await asyncio.sleep(self.delay_seconds)
            if self.is_ready:
                return JSONResponse({"status": "ready"})
            return JSONResponse({"detail": "database: no response"}, 503)

        return Starlette(routes=[Route("/metrics", expose), Route("/health/ready", ready)])


@dataclass(slots=True, kw_only=True)
class SmallStack:
    """A supervisor of processes: one that was killed has a new id at the second look after it."""

    entries: Sequence[Entry]
    can_control: bool = True
    pids: dict[str, int | None] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    restarts: bool = True
    done: list[str] = field(default_factory=list)
    parked: Sequence[Parked] = ()
    asked: list[Mapping[str, Collection[str]]] = field(default_factory=list)

    def read_programs(self) -> Mapping[str, Program]:
        found = {
            name: Program(state=self.states.get(name, "RUNNING"), pid=pid, uptime_seconds=1)
            for name, pid in self.pids.items()
        }
        if self.restarts:
            self.pids = {name: 1000 if pid is None else pid for name, pid in self.pids.items()}
        return found

    def read_log(self, name: str, lines_max: int) -> Sequence[str]:
        return [f"<b>{name}</b> has started"]

    def kill(self, name: str) -> None:
        self.done.append(f"kill {name}")
        self.pids[name] = None

    def stop(self, name: str) -> None:
        self.done.append(f"stop {name}")
        self.states[name] = "STOPPED"

    def start(self, name: str) -> None:
        self.done.append(f"start {name}")
        self.states[name] = "RUNNING"

    def get_command(self, action: str, name: str) -> str:
        return f"docker compose {action} {name}"

    async def list_parked(self, consumers: Mapping[str, Collection[str]]) -> Sequence[Parked]:
        self.asked.append(dict(consumers))
        return self.parked


def entry(name: str, port: int) -> Entry:
    address = f"http://127.0.0.1:{port}"
    return Entry(name=name, kind="relay", service="users", url=address, link=address)
