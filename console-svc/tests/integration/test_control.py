"""Each action has an end and an outcome; one fault at a time, and a broker always comes back."""

import asyncio

import httpx
import pytest

from console_svc import control as module
from console_svc.control import Action, Busy, Control, NotThere
from console_svc.orders import CallFailed, Load, Shop
from console_svc.stack import NoControl
from test_support.small_stack import SmallStack

WAIT_SECONDS_MAX = 20


class NoShop(Shop):
    """Orders that fail at once, or never end."""

    is_endless = False

    async def send_load(self, load: Load) -> None:
        load.placed += 2
        if self.is_endless:
            await asyncio.Event().wait()
        raise CallFailed("users-api does not respond: ConnectError")


@pytest.fixture
def shop(stack: SmallStack, client: httpx.AsyncClient) -> NoShop:
    return NoShop(stack.entries, client, lambda role: role)


@pytest.fixture
def control(stack: SmallStack, shop: NoShop, client: httpx.AsyncClient) -> Control:
    return Control(stack, shop, client)


async def end_of(control: Control) -> Action:
    """The newest action, as soon as it has ended."""
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while control.recent[0].is_running:
            await asyncio.sleep(0.01)
    return control.recent[0]


async def test_a_process_that_is_killed_is_reported_until_it_is_back(
    control: Control, stack: SmallStack
) -> None:
    control.begin_kill("users-relay")
    action = await end_of(control)

    assert stack.done == ["kill users-relay"]
    assert action.title == "users-relay killed"
    assert action.outcome.startswith("back after ")
    assert not action.has_failed


async def test_a_process_that_does_not_come_back_is_given_up(
    control: Control, stack: SmallStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BACK_SECONDS_MAX", 0.3)
    stack.restarts = False

    control.begin_kill("users-relay")
    action = await end_of(control)

    assert action.has_failed
    assert "users-relay is not ready after 0 s" in action.outcome


async def test_a_second_fault_waits_for_the_first_and_a_load_does_not(
    control: Control, stack: SmallStack
) -> None:
    stack.restarts = False
    control.begin_kill("users-relay")

    with pytest.raises(Busy, match="one fault at a time: users-relay killed"):
        control.begin_kill("orders-relay")
    control.begin_load()
    await asyncio.sleep(0)

    stack.restarts = True
    await control.close()
    assert stack.done.count("kill orders-relay") == 0


@pytest.mark.parametrize("name", ["kafka", "console", "none", ""])
async def test_only_processes_of_services_can_be_killed(control: Control, name: str) -> None:
    with pytest.raises(NotThere):
        control.begin_kill(name)


async def test_the_broker_is_stopped_and_started_again(
    control: Control, stack: SmallStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BROKER_STOPPED_SECONDS", 0.1)

    control.begin_broker_stop()
    action = await end_of(control)

    assert stack.done == ["stop kafka", "start kafka"]
    assert action.outcome.startswith("back, ")


async def test_a_console_that_stops_meanwhile_starts_the_broker_first(
    control: Control, stack: SmallStack
) -> None:
    control.begin_broker_stop()
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while "stop kafka" not in stack.done:
            await asyncio.sleep(0.01)

    await control.close()

    assert stack.done == ["stop kafka", "start kafka"]


async def test_a_load_that_fails_says_how_far_it_came(control: Control) -> None:
    control.begin_load()
    action = await end_of(control)

    assert action.has_failed
    assert action.outcome == "users-api does not respond: ConnectError"


async def test_a_load_that_runs_shows_what_it_has_placed(control: Control, shop: NoShop) -> None:
    shop.is_endless = True
    control.begin_load()
    await asyncio.sleep(0)

    assert control.recent[0].outcome == "2 orders placed"
    with pytest.raises(Busy):
        control.begin_load()
    await control.close()


async def test_without_a_supervisor_the_commands_are_named(
    control: Control, stack: SmallStack
) -> None:
    stack.can_control = False

    with pytest.raises(NoControl, match="docker compose kill users-relay"):
        control.begin_kill("users-relay")
    with pytest.raises(NoControl, match="docker compose stop kafka"):
        control.begin_broker_stop()
