"""Money under random interleavings of commands and messages, with repeats and deaths."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import Phase

from local_stack.testing import new_database
from shared.inbox import consumer
from shared.inbox.inbox import Inbox, Next
from test_support.waits import HANGS_AFTER_SECONDS
from verification.saga.campaign import play
from verification.saga.world import Services, open_services

pytestmark = pytest.mark.verify(part="saga")

INTERLEAVINGS = 150
CONTROL_INTERLEAVINGS = 3_000


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "BACKOFF_SECONDS_FIRST", 0.001)


@pytest.fixture(scope="module")
def services(postgres_dsn: str, runner: asyncio.Runner) -> Iterator[Services]:
    with new_database(postgres_dsn) as users, new_database(postgres_dsn) as orders:
        opening = open_services(users, orders)
        yield runner.run(opening.__aenter__())
        runner.run(opening.__aexit__(None, None, None))


def test_credit_balances_to_the_cent_in_every_interleaving(
    services: Services, runner: asyncio.Runner
) -> None:
    play(services, runner, INTERLEAVINGS, number=1)


def test_without_the_version_guard_it_does_not(
    services: Services, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: every delivery is applied, also a repeated one."""
    monkeypatch.setattr(Inbox, "verdict", lambda inbox, message: Next())

    with pytest.raises(AssertionError):
        play(services, runner, CONTROL_INTERLEAVINGS, number=1, phases=[Phase.generate])


def test_the_campaign_reports_how_many_it_played() -> None:
    """A short `make saga`."""
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "verification.saga",
            "--interleavings",
            "5",
            "--processes",
            "1",
        ],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert "all balance, to the cent" in run.stdout
