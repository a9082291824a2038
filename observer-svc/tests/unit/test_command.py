"""`make lag` ends with 1 when something has stopped, or when nothing current is known."""

import json
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from observer_svc.__main__ import show_lag
from observer_svc.settings import create_settings
from observer_svc.states import State
from observer_svc.watch import SILENCE_SECONDS_MAX
from shared.runtime.declarations import load_declarations

Answer = Callable[..., None]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Let the observer answer with a report of this state and age."""

    def respond(
        state: State = State.OK, age_seconds: float = 0.0, servers: dict[str, Any] | None = None
    ) -> None:
        report = {
            "measured_at": (datetime.now(UTC) - timedelta(seconds=age_seconds)).isoformat(),
            "state": state,
            "consumers": [],
            "progress": [],
            "relays": [
                {
                    "name": "users-relay",
                    "database": "users",
                    "backlog": {"rows": 0, "seconds": 0, "is_held": True, "beat_seconds": 0.1},
                    "state": state,
                }
            ],
            "parked": [],
            "clock_skew_seconds": {},
            "servers": servers or {},
            "disk": None,
        }
        request = httpx.Request("GET", "http://observer/lag")
        response = httpx.Response(200, json=report, request=request)
        monkeypatch.setattr(httpx, "get", lambda *_, **__: response)

    return respond


@pytest.mark.parametrize(
    ("state", "status"), [(State.OK, 0), (State.WARN, 0), (State.STALL, 0), (State.STOP, 1)]
)
def test_only_what_has_stopped_is_a_failure(
    answer: Answer, capsys: pytest.CaptureFixture[str], state: State, status: int
) -> None:
    answer(state)

    assert show_lag("observer", as_json=False) == status
    assert f"ago  {state}" in capsys.readouterr().out


def test_what_cannot_be_measured_is_a_failure(answer: Answer) -> None:
    answer(servers={"kafka": "it is down"})

    assert show_lag("observer", as_json=False) == 1


def test_programs_get_the_report_itself(answer: Answer, capsys: pytest.CaptureFixture[str]) -> None:
    answer()

    assert show_lag("observer", as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["relays"][0]["state"] == "OK"


def test_an_old_report_is_not_shown(answer: Answer) -> None:
    answer(age_seconds=SILENCE_SECONDS_MAX + 10)

    with pytest.raises(SystemExit, match=r"the observer has not measured for 4. s"):
        show_lag("observer", as_json=False)


def test_without_an_observer_one_line_says_what_to_do() -> None:
    with pytest.raises(SystemExit, match=r"does not respond: .*`make status` shows why"):
        show_lag("127.0.0.1:1", as_json=False)


def test_the_observer_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Docker passes the proxies of its own settings to each container."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with socket.create_server(("127.0.0.1", 0)) as observer:
        observer.setblocking(False)
        monkeypatch.setattr("observer_svc.__main__.REQUEST_SECONDS_MAX", 0.5)
        with pytest.raises(SystemExit):
            show_lag(f"127.0.0.1:{observer.getsockname()[1]}", as_json=False)

        # The kernel has accepted the connection; without one this is a BlockingIOError.
        observer.accept()[0].close()


def test_there_is_a_setting_for_each_database() -> None:
    stores = {f"{name}_store_url" for name in load_declarations().databases}

    assert stores <= create_settings().model_fields.keys()
