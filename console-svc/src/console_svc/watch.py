"""Measures all processes again and again, while the page is open, and keeps what it saw.

It reads what any Prometheus would read, and asks the supervisor for what it knows. Without a visit
for IDLE_SECONDS_MAX it rests.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx

from console_svc.catalog import JAEGER, KAFKA, OBSERVER, POSTGRES, Entry
from console_svc.metrics import LAG, History, Window, parse
from console_svc.resources import Program, get_server_state, get_state
from console_svc.road import LAG as LAG_METRIC
from console_svc.road import NOTHING_SEEN, PARKED, REACHED, Observation, Seen
from console_svc.stack import Parked, Stack
from shared.runtime.processes import wait

SCRAPE_SECONDS = 2.0
SCRAPE_SECONDS_MAX = 1.5
"""Of one process; one that takes longer is not ready."""
MISSED_SECONDS_MAX = 10.0
"""For which a process that is only slow keeps its figures."""
IDLE_SECONDS_MAX = 30.0
"""Without a visit; longer ago, nothing is measured."""
PARKED_SECONDS = 6.0
"""Between two listings of parked streams, where the observer counts any."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that was seen last."""

    observed: Observation
    programs: Mapping[str, Program]
    histories: Mapping[str, History]
    parked: Sequence[Parked]
    parked_counts: Mapping[str, int]
    """By the name of the consumer, as the observer counts them."""


class Watch:
    """The latest observation of a stack, and the history of its figures, both bounded."""

    def __init__(self, stack: Stack, client: httpx.AsyncClient) -> None:
        self._stack = stack
        self._client = client
        self._measuring = asyncio.Lock()
        self._visited = asyncio.Event()
        self._visited_at = self._measured_at = self._listed_at = float("-inf")
        self._windows: dict[str, Window] = {}
        self._histories: dict[str, History] = {}
        self._observed: Observation = {}
        self._programs: Mapping[str, Program] = {}
        self._parked: Sequence[Parked] = ()

    async def look(self) -> View:
        """What was seen last, for a visitor; only after a rest it has to be measured first."""
        self._visited_at = time.monotonic()
        self._visited.set()
        if not self._observed:
            await self.measure()
        return View(
            observed=self._observed,
            programs=self._programs,
            histories=self._histories,
            parked=self._parked,
            parked_counts=self._count_parked(),
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Measure while there are visitors, until `stop`."""
        while not stop.is_set():
            if time.monotonic() - self._visited_at > IDLE_SECONDS_MAX:
                self._visited.clear()
                self._forget()
                await wait_for_any(stop, self._visited)
                continue
            began = time.monotonic()
            try:
                await self.measure()
            except Exception:  # a bug here must not end the page
                log.exception("a measurement failed")
            await wait(stop, max(SCRAPE_SECONDS - (time.monotonic() - began), 0.1))

    def _forget(self) -> None:
        """After a rest, rates and charts begin again: a burst would be shown otherwise."""
        self._windows.clear()
        self._histories.clear()
        self._observed = {}

    async def measure(self) -> None:
        """Scrape every process once."""
        async with self._measuring:
            now = time.monotonic()
            if now - self._measured_at < SCRAPE_SECONDS / 2:
                return  # another visitor did it
            self._programs, asked = await asyncio.gather(
                asyncio.to_thread(self._stack.read_programs),
                asyncio.gather(*(self._ask(entry, now) for entry in self._stack.entries)),
            )
            obstacles = dict(asked)
            self._observed = {
                entry.name: self._conclude(entry, obstacles[entry.name])
                for entry in self._stack.entries
            }
            self._add_histories()
            self._measured_at = time.monotonic()
            await self._list_parked(now)

    async def _ask(self, entry: Entry, now: float) -> tuple[str, str | None]:
        """The name, and why the process is not ready: empty if it is, None without a response."""
        try:
            if has_metrics(entry):
                await self._scrape(entry, now)
                return entry.name, await self._probe(entry)
            if entry.url is not None:
                await self._client.get(entry.url, timeout=SCRAPE_SECONDS_MAX)
                return entry.name, ""
        except httpx.TimeoutException:
            self._forget_old(entry, now)
            return entry.name, f"no response within {SCRAPE_SECONDS_MAX} s"
        except (httpx.HTTPError, ValueError):
            # Nothing is kept of a process that does not respond: old rates would look current.
            self._windows.pop(entry.name, None)
        return entry.name, None

    async def _scrape(self, entry: Entry, now: float) -> None:
        response = await self._client.get(f"{entry.url}/metrics", timeout=SCRAPE_SECONDS_MAX)
        scrape = parse(response.raise_for_status().text, now)
        self._windows.setdefault(entry.name, Window()).scrapes.append(scrape)

    def _forget_old(self, entry: Entry, now: float) -> None:
        last = self._windows.get(entry.name, Window()).last
        if last and now - last.at > MISSED_SECONDS_MAX:
            del self._windows[entry.name]

    async def _probe(self, entry: Entry) -> str:
        response = await self._client.get(f"{entry.url}/health/ready", timeout=SCRAPE_SECONDS_MAX)
        return "" if response.is_success else read_detail(response)

    def _conclude(self, entry: Entry, obstacle: str | None) -> Seen:
        program = self._programs.get(entry.name)
        if entry.name in (POSTGRES, KAFKA):
            return Seen(state=get_server_state(self._read_reached(entry.name), program))
        state = get_state(
            responds=obstacle is not None,
            obstacle=obstacle or "",
            program=program,
            on_request=entry.on_request or entry.name == JAEGER,
        )
        window = self._windows.get(entry.name, Window())
        return Seen(state=state, obstacle=obstacle or "", window=window)

    def _read_reached(self, server: str) -> float | None:
        """By the observer: 1 if it could read the server, the broker or any database."""
        window = self._windows.get(OBSERVER, Window())
        if window.last is None:
            return None
        found = {dict(key)["server"]: value for key, value in window.last.select(REACHED).items()}
        if server == KAFKA:
            return found.get(KAFKA)
        return max((value for name, value in found.items() if name != KAFKA), default=None)

    def _add_histories(self) -> None:
        observer = self._windows.get(OBSERVER, Window())
        for entry in self._stack.entries:
            if has_metrics(entry):
                history = self._histories.setdefault(entry.name, History())
                history.add_all(self._windows.get(entry.name, Window()))
                if entry.kind == "consumer":
                    history.add(LAG, observer.total(LAG_METRIC, consumer=entry.name))

    def _count_parked(self) -> Mapping[str, int]:
        return {labels["consumer"]: int(count) for labels, count in self._select_parked()}

    def _select_parked(self) -> list[tuple[Mapping[str, str], float]]:
        """The counts of the observer that are not zero, each with its labels."""
        last = self._observed.get(OBSERVER, NOTHING_SEEN).window.last
        found = last.select(PARKED).items() if last else ()
        return [(dict(labels), count) for labels, count in found if count]

    async def _list_parked(self, now: float) -> None:
        """Read the reasons, where there is something to read."""
        consumers: dict[str, list[str]] = defaultdict(list)
        for labels, _ in self._select_parked():
            consumers[labels["database"]].append(labels["consumer"])
        if not consumers:
            self._parked = ()
        elif now - self._listed_at >= PARKED_SECONDS:
            self._listed_at = now
            self._parked = await self._stack.list_parked(consumers)


def has_metrics(entry: Entry) -> bool:
    return entry.url is not None and entry.kind != "server"


def read_detail(response: httpx.Response) -> str:
    """Why a process is not ready, in its own words."""
    try:
        return str(response.json()["detail"])
    except (ValueError, LookupError, TypeError):
        return f"status {response.status_code}"


async def wait_for_any(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
