"""`make demo`: the sample is loaded once, and what is printed suits the way the stack runs."""

import json
import ssl
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from scripts import demo, guide, trace
from test_support.system.clients import Hometown, Json
from test_support.system.sample import rows

INSIDE = {
    "users-api": "http://users-api:8000",
    "orders-api": "http://orders-api:8000",
    "analytics-api": "http://analytics-api:8000",
    "jaeger": "http://jaeger:16686",
}
OUTSIDE = {name: f"http://127.0.0.1:{port}" for port, name in enumerate(INSIDE, start=9001)}
ORDERS = [
    {
        "order_id": f"01936f2a-7b00-7000-8000-{number:012}",
        "status": "confirmed",
        "amount": "16166.64",
        "ordered_at": row["ordered_at"],
    }
    for number, row in enumerate(rows("orders"), start=1)
]
FIRST = ORDERS[0]["order_id"]
COUNTED: Json = {"hour": "2016-11-11T00:00:00Z", "final": True, "cells": [], **demo.EXPECTED}
CHANGED: Json = {**COUNTED, "quantity": 9, "amount": "28339.92"}
EMPTY: Json = {**COUNTED, "final": False, "purchases": 0}
PAST: Json = {**EMPTY, "final": True}
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
TRACE = {
    "traceID": TRACE_ID,
    "processes": {"p1": {"serviceName": "analytics-job"}},
    "spans": [
        {
            "spanID": "1",
            "operationName": "merge cell",
            "processID": "p1",
            "startTime": 1,
            "duration": 1,
            "tags": [],
        }
    ],
}


@dataclass
class Shop:
    """APIs of a stack with these orders and this hour; they refuse all that would write."""

    hour: Json
    orders: Sequence[Json] = field(default_factory=lambda: ORDERS)
    has_jaeger: bool = True
    status: int = 200
    """Of each answer of an API."""
    starting: int = 0
    """So many connections are refused before the first answer."""
    behind: int = 0
    """After so many questions for the status, everything is counted."""
    writes: list[str] = field(default_factory=list)

    def answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if self.starting:
            self.starting -= 1
            raise httpx.ConnectError("refused")
        if request.url.host == "jaeger":
            return httpx.Response(200 if self.has_jaeger else 503, json={"data": [TRACE]})
        if request.method != "GET":
            self.writes.append(path)
            return httpx.Response(409, json={})
        if path == "/v1/status":
            self.behind = max(0, self.behind - 1)
        answers: dict[str, Json] = {
            "/v1/orders": {"orders": self.orders, "next": None},
            "/v1/status": {"lag": {"orders.v1": {"0": self.behind}}},
        }
        hour = EMPTY if self.behind else self.hour
        return httpx.Response(self.status, json=answers.get(path, hour))

    @property
    def hometown(self) -> Hometown:
        client = httpx.Client(transport=httpx.MockTransport(self.answer))
        return Hometown(INSIDE, {}, client, ssl.create_default_context())


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Shop], str]:
    """Call `make demo`; what it prints."""
    monkeypatch.delenv(guide.ADDRESSES, raising=False)
    monkeypatch.delenv("HOMETOWN_IN", raising=False)
    monkeypatch.setattr(sys, "argv", ["demo"])

    def call(shop: Shop) -> str:
        monkeypatch.setattr(Hometown, "of_run_folder", lambda folder: shop.hometown)
        demo.main()
        return capsys.readouterr().out

    return call


@pytest.fixture
def in_container(monkeypatch: pytest.MonkeyPatch, run: Callable[[Shop], str]) -> None:
    """As `docker compose up` calls it."""
    monkeypatch.setenv(guide.ADDRESSES, json.dumps(OUTSIDE))


def test_a_sample_that_is_not_there_is_loaded(run: Callable[[Shop], str]) -> None:
    """The negative control of all tests that find no write."""
    shop = Shop(EMPTY, orders=[])

    with pytest.raises(SystemExit, match="the demonstration stopped"):
        run(shop)
    assert shop.writes == ["/v1/users"]


def test_a_sample_of_which_a_part_is_there_is_loaded(run: Callable[[Shop], str]) -> None:
    """Requests are repeated with their keys, so that what is there does not become more."""
    shop = Shop(EMPTY, orders=ORDERS[:-1])

    with pytest.raises(SystemExit, match="the demonstration stopped"):
        run(shop)
    assert shop.writes == ["/v1/users"]


def test_a_counted_sample_is_not_loaded_again(run: Callable[[Shop], str]) -> None:
    """The APIs forget after three days which requests they have answered."""
    shop = Shop(COUNTED)

    printed = run(shop)

    assert shop.writes == []
    assert "44506.56" in printed
    assert f"{INSIDE['orders-api']}/v1/orders/{FIRST}" in printed
    assert "changed" not in printed


def test_a_loaded_sample_that_is_not_counted_yet_is_waited_for(run: Callable[[Shop], str]) -> None:
    """The demonstration was interrupted after its last order."""
    shop = Shop(COUNTED, behind=3)

    printed = run(shop)

    assert shop.writes == []
    assert "changed" not in printed


def test_a_sample_that_was_changed_is_shown_as_it_is(run: Callable[[Shop], str]) -> None:
    """An order of it can be cancelled, as the pages of the APIs invite to."""
    shop = Shop(CHANGED)

    printed = run(shop)

    assert shop.writes == []
    assert "28339.92" in printed
    assert "it has changed since: with the sample alone, 4 local buyers, 4 purchases" in printed


def test_a_counted_sample_behind_other_orders_is_shown_without_its_order(
    run: Callable[[Shop], str],
) -> None:
    shop = Shop(COUNTED, orders=[])

    printed = run(shop)

    assert shop.writes == []
    assert "44506.56" in printed
    assert "/v1/orders/" not in printed


def test_a_sample_that_would_come_too_late_is_refused(run: Callable[[Shop], str]) -> None:
    shop = Shop(PAST, orders=[])

    with pytest.raises(SystemExit, match=r"newer orders than the sample's.+make clean demo"):
        run(shop)
    assert shop.writes == []


@pytest.mark.usefixtures("in_container")
@pytest.mark.parametrize(
    ("shop", "reason"),
    [
        (Shop(PAST, orders=[]), "docker compose down -v, which removes all data"),
        (Shop(PAST, orders=[], status=401), "the sample is for development"),
    ],
    ids=["late", "foreign-issuer"],
)
def test_a_container_without_a_sample_ends_well_and_says_where_to_look(
    shop: Shop, reason: str, run: Callable[[Shop], str]
) -> None:
    """It would be started again five times, and `docker compose up --wait` would fail."""
    printed = run(shop)

    assert shop.writes == []
    assert reason in printed
    assert "HOMETOWN_DEMO=0" in printed
    assert f"{OUTSIDE['users-api']}/docs" in printed


@pytest.mark.usefixtures("in_container")
def test_a_container_waits_for_the_first_answer(run: Callable[[Shop], str]) -> None:
    """After a start of the machine, the engine starts all containers at once."""
    assert "44506.56" in run(Shop(COUNTED, starting=3))


def test_a_stack_that_does_not_answer_is_reported_at_once(run: Callable[[Shop], str]) -> None:
    with pytest.raises(SystemExit, match=r"not running, or not all of it: make up$"):
        run(Shop(COUNTED, starting=1))


@pytest.mark.usefixtures("in_container")
def test_a_container_prints_commands_and_addresses_for_outside(run: Callable[[Shop], str]) -> None:
    printed = run(Shop(COUNTED))

    assert f"{OUTSIDE['orders-api']}/v1/orders/{FIRST}" in printed
    assert f"its trace: {OUTSIDE['jaeger']}/trace/{TRACE_ID}" in printed
    assert all(f"{OUTSIDE[name]}/docs " in printed for name in OUTSIDE if name != "jaeger")
    assert "docker compose run --rm token clerk" in printed
    assert not [address for address in INSIDE.values() if address in printed]
    assert "make " not in printed


def test_an_api_that_is_not_in_the_stack_yet_is_no_place_to_look(
    run: Callable[[Shop], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was declared after the start."""
    monkeypatch.setenv(guide.ADDRESSES, json.dumps({**OUTSIDE, "users-api": ""}))
    assert "users-api: requests to try" in run(Shop(COUNTED))
    without = {name: address for name, address in OUTSIDE.items() if name != "users-api"}
    monkeypatch.setenv(guide.ADDRESSES, json.dumps(without))

    assert "users-api: requests to try" not in run(Shop(COUNTED))


def test_jaeger_is_no_place_to_look_while_it_does_not_answer(run: Callable[[Shop], str]) -> None:
    with_jaeger, without = run(Shop(COUNTED)), run(Shop(COUNTED, has_jaeger=False))

    assert INSIDE["jaeger"] in with_jaeger
    assert INSIDE["jaeger"] not in without
    assert "no trace: Jaeger is not ready yet" in without


@pytest.mark.parametrize(("way", "stack"), [("processes", ""), ("cluster", " in=cluster")])
def test_each_command_is_one_for_the_stack_that_was_shown(
    way: str, stack: str, run: Callable[[Shop], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMETOWN_IN", way)

    lines = run(Shop(COUNTED)).partition("Commands:\n")[2].splitlines()

    assert [line.strip().partition("   ")[0] for line in lines] == [
        f"make {verb}{stack}" for verb in ("trace", "token as=clerk", "status", "logs", "down")
    ]


@pytest.mark.parametrize("main", [demo.main, trace.main], ids=["demo", "trace"])
@pytest.mark.usefixtures("in_container")
def test_without_a_stack_the_command_that_starts_one_is_named(
    main: Callable[[], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(tmp_path))

    with pytest.raises(SystemExit, match="not running, or not all of it: docker compose up"):
        main()
