"""The canary orders at a time that orders have reached, and each order has one outcome."""

import asyncio
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from observer_svc import canary
from observer_svc.canary import Apis, Outcome, attempt_or_log
from test_support.metric_registry import Recorder

NEWEST = "2016-11-11T05:00:00Z"


@dataclass
class Shop:
    """The three APIs, as far as the canary sees them."""

    watermark: str | None = "2016-11-11T03:10:00Z"
    hours: tuple[str, ...] = ("2016-11-11T04:00:00Z", NEWEST)
    status: str = "confirmed"
    hops: tuple[str, ...] = ("counted",)
    is_up: bool = True
    placed: list[dict[str, object]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)

    def respond(self, request: httpx.Request) -> httpx.Response:
        assert request.headers["Authorization"] == "Bearer token"
        if not self.is_up:
            raise httpx.ConnectError("refused")
        return httpx.Response(200, json=self._find(request))

    def _find(self, request: httpx.Request) -> dict[str, object]:
        match request.method, request.url.path:
            case "GET", "/v1/status":
                return {"watermark": self.watermark}
            case "GET", "/v1/hours":
                return {"hours": [{"hour": hour} for hour in self.hours]}
            case "GET", "/v1/orders/order/journey":
                return {"hops": [{"hop": hop} for hop in ("recorded", *self.hops)]}
            case "POST", "/v1/users":
                self.keys.add(request.headers["Idempotency-Key"])
                return {"user_id": "user"}
            case "POST", "/v1/items":
                self.keys.add(request.headers["Idempotency-Key"])
                return {"item_id": "item"}
            case "POST", "/v1/orders":
                self.placed.append(json.loads(request.content))
                return {"order_id": "order"}
            case _:
                return {"status": self.status}


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(canary, "DURATION", recorder.of("duration"))
    monkeypatch.setattr(canary, "COUNTED_SECONDS_MAX", 0.2)
    monkeypatch.setattr(canary, "POLL_SECONDS", 0.01)
    return recorder


def order(shop: Shop, tmp_path: Path) -> Outcome:
    token_file = tmp_path / "token"
    token_file.write_text("token\n")

    async def run() -> Outcome:
        async with httpx.AsyncClient(transport=httpx.MockTransport(shop.respond)) as client:
            apis = Apis(
                client=client,
                users="http://users",
                orders="http://orders",
                analytics="http://analytics",
                token_file=token_file,
            )
            return await attempt_or_log(apis)

    return asyncio.run(run())


def stages(recorder: Recorder) -> set[str]:
    return {attributes[0][1] for _, attributes in recorder.values}


def test_an_order_is_followed_until_it_is_counted(recorder: Recorder, tmp_path: Path) -> None:
    assert order(Shop(), tmp_path) == "counted"
    assert stages(recorder) == {"confirmed", "counted"}


def test_event_time_never_advances_because_of_it(recorder: Recorder, tmp_path: Path) -> None:
    shop = Shop()
    order(shop, tmp_path)

    assert [each["ordered_at"] for each in shop.placed] == [NEWEST]


def test_its_order_is_not_late_where_little_lateness_is_allowed(
    recorder: Recorder, tmp_path: Path
) -> None:
    shop = Shop(watermark="2016-11-11T05:30:00Z")
    order(shop, tmp_path)

    assert [each["ordered_at"] for each in shop.placed] == ["2016-11-11T05:30:01Z"]


def test_it_waits_for_the_first_order_of_somebody(recorder: Recorder, tmp_path: Path) -> None:
    shop = Shop(watermark=None, hours=())

    assert order(shop, tmp_path) == "waiting"
    assert shop.placed == []


@pytest.mark.parametrize(
    ("shop", "outcome", "seen"),
    [
        (Shop(status="pending"), "not-confirmed", set()),
        (Shop(status="rejected"), "not-confirmed", set()),
        (Shop(hops=()), "not-counted", {"confirmed"}),
        (Shop(hops=("too-late",)), "too-late", {"confirmed"}),
        (Shop(is_up=False), "failed", set()),
    ],
)
def test_what_becomes_of_an_order_is_its_outcome(
    shop: Shop, outcome: str, seen: set[str], recorder: Recorder, tmp_path: Path
) -> None:
    assert order(shop, tmp_path) == outcome
    assert stages(recorder) == seen


def test_its_user_is_one_of_the_day(tmp_path: Path, recorder: Recorder) -> None:
    shop = Shop()
    order(shop, tmp_path)
    order(shop, tmp_path)

    assert len(shop.keys) == 2, "one user, one item"
    assert any(f"{datetime.now(UTC):%Y-%m-%d}" in key for key in shop.keys)
