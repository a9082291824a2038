"""A canary: an order each minute, through the APIs as a customer's, and how long it takes.

It orders at a time that orders have reached: event time never advances because of it, so that no
other order becomes late. Its user lives nowhere near the origin of its item: no hour has
a local buyer more.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, get_args

import httpx

from observer_svc.settings import CanarySettings
from shared.runtime import metrics
from shared.runtime.processes import create_stop_event, wait
from shared.web.health import health_server
from shared.web.tls import create_client_context

REQUEST_SECONDS_MAX = 20.0
DECISION_SECONDS_MAX = 15
"""In one request, in which the API waits for the decision."""
COUNTED_SECONDS_MAX = 30.0
POLL_SECONDS = 0.25

NAME, ADDRESS, ORIGIN = "Canary", "canary-home", "canary-origin"
PRICE, CREDIT_LIMIT = "0.01", "1000.00"
BEFORE = timedelta(days=1)
"""The user lives there, and the item comes from there, since a day before the order."""

DURATION = metrics.measure(
    "hometown.canary.duration", "s", "From the request of the canary to a stage of its order"
)
ORDERS = metrics.Count(
    "hometown.canary.orders", "{order}", "Orders of the canary by what became of them"
)

Stage = Literal["confirmed", "counted"]
Outcome = Literal["counted", "too-late", "not-counted", "not-confirmed", "failed", "waiting"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Apis:
    """The APIs as the canary calls them. Each method raises httpx.HTTPError."""

    client: httpx.AsyncClient
    users: str
    orders: str
    analytics: str
    token_file: Path

    async def register_user(self, today: datetime, effective_at: datetime) -> str:
        """The user of this day: one with orders of weeks would take long to read."""
        user = {
            "name": NAME,
            "address": ADDRESS,
            "gender": "female",
            "credit_limit": CREDIT_LIMIT,
            "effective_at": to_text(effective_at),
        }
        key = f"canary/{today:%Y-%m-%d}/{to_text(effective_at)}"
        return str((await self._post(self.users, "/v1/users", user, key))["user_id"])

    async def list_item(self, effective_at: datetime) -> str:
        item = {
            "name": NAME,
            "type": NAME.lower(),
            "origin": ORIGIN,
            "price": PRICE,
            "effective_at": to_text(effective_at),
        }
        key = f"canary/{to_text(effective_at)}"
        return str((await self._post(self.orders, "/v1/items", item, key))["item_id"])

    async def place_order(self, user_id: str, item_id: str, ordered_at: datetime) -> str:
        order = {
            "user_id": user_id,
            "lines": [{"item_id": item_id, "quantity": 1}],
            "ordered_at": to_text(ordered_at),
        }
        return str((await self._post(self.orders, "/v1/orders", order))["order_id"])

    async def wait_for_decision(self, order_id: str) -> str:
        """Its status: pending if there is no decision after DECISION_SECONDS_MAX."""
        path = f"/v1/orders/{order_id}"
        return str((await self._get(self.orders, path, wait=DECISION_SECONDS_MAX))["status"])

    async def find_time(self) -> datetime | None:
        """A time that orders have reached and that is not final; None before the first order."""
        watermark = (await self._get(self.analytics, "/v1/status"))["watermark"]
        query = {"from": watermark} if watermark else {}
        hours = (await self._get(self.analytics, "/v1/hours", **query))["hours"]
        if not hours:
            return None
        newest = datetime.fromisoformat(hours[-1]["hour"])
        if watermark is None:
            return newest
        return max(newest, datetime.fromisoformat(watermark) + timedelta(seconds=1))

    async def list_hops(self, order_id: str) -> set[str]:
        """How far the order has come; `counted` and `too-late` are the ends."""
        found = await self._get(self.orders, f"/v1/orders/{order_id}/journey")
        return {each["hop"] for each in found["hops"]}

    async def _get(self, address: str, path: str, **query: Any) -> Mapping[str, Any]:
        answer = await self.client.get(address + path, params=query, headers=self._headers())
        return dict(answer.raise_for_status().json())

    async def _post(
        self, address: str, path: str, body: Mapping[str, Any], key: str | None = None
    ) -> Mapping[str, Any]:
        headers = self._headers() | ({"Idempotency-Key": key} if key else {})
        answer = await self.client.post(address + path, json=body, headers=headers)
        return dict(answer.raise_for_status().json())

    def _headers(self) -> dict[str, str]:
        """The token is read each time: it can be replaced meanwhile."""
        return {"Authorization": f"Bearer {self.token_file.read_text().strip()}"}


def to_text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


async def attempt(apis: Apis) -> Outcome:
    """Place an order and follow it. Raises httpx.HTTPError, OSError."""
    ordered_at = await apis.find_time()
    if ordered_at is None:
        return "waiting"
    effective_at = ordered_at.replace(hour=0, minute=0, second=0, microsecond=0) - BEFORE
    user_id = await apis.register_user(datetime.now(UTC), effective_at)
    item_id = await apis.list_item(effective_at)
    began = time.monotonic()
    order_id = await apis.place_order(user_id, item_id, ordered_at)
    status = await apis.wait_for_decision(order_id)
    if status != "confirmed":
        log.warning("the order %s is %s", order_id, status)
        return "not-confirmed"
    record("confirmed", began)
    while time.monotonic() - began < COUNTED_SECONDS_MAX:
        hops = await apis.list_hops(order_id)
        if "counted" in hops:
            record("counted", began)
            return "counted"
        if "too-late" in hops:
            return "too-late"
        await asyncio.sleep(POLL_SECONDS)
    log.warning("the order %s is not counted after %.0f s", order_id, COUNTED_SECONDS_MAX)
    return "not-counted"


def record(stage: Stage, began: float) -> None:
    DURATION.record(time.monotonic() - began, {"stage": stage})


def begin_counts() -> None:
    for outcome in get_args(Outcome):
        ORDERS.add(0, {"outcome": outcome})


@asynccontextmanager
async def open_apis(settings: CanarySettings) -> AsyncIterator[Apis]:
    verify = create_client_context(settings.http_ca_file)
    async with httpx.AsyncClient(timeout=REQUEST_SECONDS_MAX, verify=verify) as client:
        yield Apis(
            client=client,
            users=settings.users_url,
            orders=settings.orders_url,
            analytics=settings.analytics_url,
            token_file=settings.canary_token_file,
        )


async def run(settings: CanarySettings) -> None:
    """Place an order every `canary_seconds` until SIGTERM or SIGINT."""
    stop = create_stop_event()
    begin_counts()
    async with (
        health_server(settings.http_host, settings.http_port, {}),
        open_apis(settings) as apis,
    ):
        while not stop.is_set():
            began = time.monotonic()
            ORDERS.add(1, {"outcome": await attempt_or_log(apis)})
            await wait(stop, max(0.0, settings.canary_seconds - (time.monotonic() - began)))


async def attempt_or_log(apis: Apis) -> Outcome:
    try:
        return await attempt(apis)
    except (httpx.HTTPError, OSError) as error:
        log.warning("the order of the canary failed: %r", error)
        return "failed"
