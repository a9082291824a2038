"""The state of a process: by what it responds, and by its supervisor where it does not."""

import pytest

from console_svc.catalog import list_entries
from console_svc.resources import Program, format_value, get_server_state, get_state
from console_svc.road import State
from shared.runtime.declarations import load_declarations

RUNNING = Program(state="RUNNING", pid=1, uptime_seconds=3)
STOPPED = Program(state="STOPPED", pid=None, uptime_seconds=None)
URLS = {"users-api": "http://users-api:8000", "analytics-faust": "http://analytics-faust:8000"}
LINKS = {
    "users-api": "http://127.0.0.1:8001",
    "postgres": "127.0.0.1:15432",
    "jaeger": "http://127.0.0.1:16686",
}


@pytest.mark.parametrize(
    ("responds", "obstacle", "program", "on_request", "state"),
    [
        (True, "", RUNNING, False, "up"),
        (True, "", None, False, "up"),
        (True, "database: no response", RUNNING, False, "not ready"),
        (False, "", RUNNING, False, "down"),
        (False, "", STOPPED, False, "down"),
        (False, "", STOPPED, True, "off"),
        (False, "", None, True, "off"),
    ],
)
def test_the_state_of_a_process(
    responds: bool, obstacle: str, program: Program | None, on_request: bool, state: State
) -> None:
    found = get_state(responds=responds, obstacle=obstacle, program=program, on_request=on_request)

    assert found == state


@pytest.mark.parametrize(
    ("reached", "program", "state"),
    [
        (1.0, RUNNING, "up"),
        (None, RUNNING, "up"),
        (1.0, None, "up"),
        (0.0, RUNNING, "down"),
        (1.0, STOPPED, "down"),
        (None, None, "unknown"),
    ],
)
def test_the_state_of_a_server(
    reached: float | None, program: Program | None, state: State
) -> None:
    assert get_server_state(reached, program) == state


def test_entries_are_what_has_an_address() -> None:
    entries = {
        each.name: each
        for each in list_entries(load_declarations(), {**URLS, "jaeger": "http://j"}, LINKS)
    }

    assert list(entries) == ["postgres", "jaeger", "users-api", "analytics-faust"]
    assert entries["users-api"].has_document
    assert (entries["postgres"].link, entries["jaeger"].url) == (None, "http://j")
    assert entries["analytics-faust"].on_request


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.0, "/s", "0/s"), (2.345, "/s", "2.3/s"), (1234.5, "records", "1,234 records")],
)
def test_a_value_is_short(value: float, unit: str, text: str) -> None:
    assert format_value(value, unit) == text
