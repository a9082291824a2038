"""Processes are measured while there are visitors, and left alone otherwise."""

import asyncio
from collections.abc import Callable

import httpx
import pytest

from console_svc import watch as module
from console_svc.watch import Watch
from test_support.small_stack import Peer, SmallStack

SHORT_SECONDS = 0.05
IDLE_SECONDS = 1.0
WAIT_SECONDS_MAX = 20
APPENDED = "hometown_append_events_total"


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCRAPE_SECONDS", SHORT_SECONDS)
    monkeypatch.setattr(module, "SCRAPE_SECONDS_MAX", 5.0)


@pytest.fixture
def watch(stack: SmallStack, client: httpx.AsyncClient) -> Watch:
    return Watch(stack, client)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while not is_so():
            await asyncio.sleep(0.01)


async def test_a_visitor_sees_what_responds_and_what_is_ready(
    watch: Watch, peers: dict[str, Peer]
) -> None:
    peers["orders-relay"].is_ready = False

    view = await watch.look()

    assert {name: seen.state for name, seen in view.observed.items()} == {
        "users-relay": "up",
        "orders-relay": "not ready",
        "observer": "up",
        "users-worker": "down",
    }
    assert view.observed["orders-relay"].obstacle == "database: no response"


async def test_a_rate_is_known_after_the_second_scrape(
    watch: Watch, peers: dict[str, Peer]
) -> None:
    await watch.look()
    await asyncio.sleep(SHORT_SECONDS)
    peers["users-relay"].events = 10
    await watch.measure()

    view = await watch.look()

    rate = view.observed["users-relay"].window.rate(APPENDED)
    assert rate is not None
    assert rate > 0
    assert [series.title for series, _ in view.histories["users-relay"]] == ["events recorded"]


async def test_without_visitors_nothing_is_measured_and_rates_begin_again_at_the_next_one(
    watch: Watch, peers: dict[str, Peer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS_MAX", IDLE_SECONDS)
    peer, stop = peers["users-relay"], asyncio.Event()
    watching = asyncio.create_task(watch.run(stop))
    try:
        await asyncio.sleep(3 * SHORT_SECONDS)
        assert peer.scrapes == 0

        await watch.look()
        await until(lambda: peer.scrapes >= 3)

        await asyncio.sleep(2 * IDLE_SECONDS)
        rested = peer.scrapes
        await asyncio.sleep(10 * SHORT_SECONDS)
        assert peer.scrapes == rested

        peer.events = 1_000_000
        view = await watch.look()
        assert view.observed["users-relay"].window.rate(APPENDED) is None
        await until(lambda: peer.scrapes >= rested + 2)
    finally:
        stop.set()
        await watching


async def test_a_process_that_is_only_slow_is_not_down_and_keeps_its_figures(
    watch: Watch, peers: dict[str, Peer], monkeypatch: pytest.MonkeyPatch
) -> None:
    await watch.look()
    monkeypatch.setattr(module, "SCRAPE_SECONDS_MAX", 0.2)
    peers["users-relay"].delay_seconds = 1.0
    await asyncio.sleep(SHORT_SECONDS)
    await watch.measure()

    seen = (await watch.look()).observed["users-relay"]

    assert (seen.state, seen.obstacle) == ("not ready", "no response within 0.2 s")
    assert seen.window.last is not None


async def test_many_visitors_cost_one_scrape(watch: Watch, peers: dict[str, Peer]) -> None:
    await asyncio.gather(*(watch.look() for _ in range(20)))

    assert peers["users-relay"].scrapes == 1
