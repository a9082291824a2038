"""What status reports for a stack that was never started."""

import sys

import pytest

from local_stack import status
from local_stack.__main__ import main
from local_stack.settings import Settings
from local_stack.stack_spec import Port, Process, StackSpec
from local_stack.status import Status

WEB = Process(
    name="web",
    command=lambda _: ["true"],
    ports=(Port(name="web", default=8099, scheme="http://"),),
    ready_seconds_max=30,
)


def test_nothing_there_is_stopped_and_stays_nothing(settings: Settings) -> None:
    [web] = status.status(StackSpec(processes=(WEB,)), settings)
    assert (web.state, web.address, web.pid) == ("stopped", "", None)
    assert not settings.run_dir.exists()


@pytest.mark.parametrize(
    ("seen", "uptime_seconds", "note", "state"),
    [
        (None, 1, "", "ready"),
        ("no answer", 1, "", "starting"),
        ("no answer", 31, "", "not ready"),
        ("no answer", 31, "building", "starting"),
    ],
)
def test_a_young_or_busy_process_is_starting_and_an_old_one_is_not_ready(
    seen: str | None, uptime_seconds: int, note: str, state: str
) -> None:
    assert status.alive_state(WEB, seen, uptime_seconds, note) == state


def test_only_what_is_required_decides() -> None:
    assert Status(name="jaeger", state="absent", required=False).is_fine
    assert not Status(name="web", state="stopped", required=True).is_fine


def test_the_table_has_a_line_for_each_process() -> None:
    ready = Status(
        name="web",
        state="ready",
        required=True,
        address="http://127.0.0.1:8099",
        pid=7,
        uptime_seconds=190,
        resident_bytes=1 << 20,
    )
    late = Status(name="jaeger", state="starting", required=False, reason="building 3 min 10 s")
    assert status.as_table([ready, late]).splitlines() == [
        "name    state     pid  up          memory  address",
        "web     ready     7    3 min 10 s  1 MiB   http://127.0.0.1:8099",
        "jaeger  starting                                                  building 3 min 10 s",
    ]


def test_the_verb_fails_unless_all_is_ready(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(settings.run_dir))
    monkeypatch.setattr(sys, "argv", ["local_stack", "status", "--json"])
    assert main(StackSpec(processes=(WEB,))) == 1
    assert '"state": "stopped"' in capsys.readouterr().out
