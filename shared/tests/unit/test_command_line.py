"""The command line of a service: its commands, and what each process imports and reads."""

import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from shared.projections.read_models import ReadModel
from shared.runtime import processes
from shared.runtime.declarations import load_declarations
from shared.runtime.settings import Settings
from shared.service import command_line
from shared.service.command_line import Service
from test_support.waits import HANGS_AFTER_SECONDS

COMMANDS = (
    "api",
    "relay",
    "worker",
    "migrate",
    "parked",
    "rebuild",
    "switch",
    "replay",
    "adopt-outbox",
)
ONLY_API_OR_WORKER = ("fastapi", "jwt")


class NoSettings(Settings):
    nowhere_set: str


class Ran:
    """What ran, instead of a process."""

    def __init__(self) -> None:
        self.commands: list[str] = []

    async def api(self) -> None:
        self.commands.append("api")


def service_of(ran: Ran) -> Service[Settings, Any]:
    return Service(
        name="counters",
        package="counters_svc",
        settings=NoSettings,
        open_resources=lambda _settings, _name: nullcontext(),
        stores=lambda _resources: [],
        read_models=[],
        create_consumer=lambda _resources, _write_dead_letters: pytest.fail("no consumer"),
        run_api=ran.api,
    )


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Ran:
    ran = Ran()
    monkeypatch.setattr(sys, "argv", ["counters_svc", *arguments])
    monkeypatch.delenv("NOWHERE_SET", raising=False)
    command_line.main(service_of(ran))
    return ran


def test_the_help_lists_every_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, "--help")

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ended.value.code == 0
    assert [words[0] for words in lines if words and words[0] in COMMANDS] == list(COMMANDS)


def test_only_the_api_reads_its_own_settings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "api").commands == ["api"]

    for command in ("relay", "worker", "migrate", "replay", "adopt-outbox"):
        with pytest.raises(SystemExit, match="NOWHERE_SET: Field required"):
            run(monkeypatch, command)


def test_an_unknown_command_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes, "run", lambda main: pytest.fail("it ran"))

    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, "relays")

    assert ended.value.code == 2
    assert "invalid choice: 'relays'" in capsys.readouterr().err


def test_a_table_that_follows_another_service_is_not_rebuilt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rebuild reads the service's own events, so it would delete every row of that table."""
    [first, *others] = load_declarations().services
    [foreign, *_] = [topic for each in others for topic in each.topics]
    model = ReadModel(name="copies", topic=foreign, types=(), project=project_nothing)
    service = replace(service_of(Ran()), name=first.name, read_models=[model])

    with pytest.raises(SystemExit, match=f"copies follows {foreign}, a topic of another service"):
        command_line.demand_own_topics(service)


async def project_nothing(_connection: object, _message: object) -> None:
    """The read model is never filled here."""


def test_what_only_an_api_or_a_worker_needs_is_not_imported_for_the_others() -> None:
    found = f"import sys, {command_line.__name__}; print(*sys.modules)"

    ended = subprocess.run(
        [sys.executable, "-c", found],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANGS_AFTER_SECONDS,
    )

    assert "aiokafka" in ended.stdout.split()
    assert set(ended.stdout.split()).isdisjoint(ONLY_API_OR_WORKER)
