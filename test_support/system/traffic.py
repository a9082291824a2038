"""Clients of all APIs that send requests while something happens, and count those that fail."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx

from test_support.system.clients import Hometown, Json, rfc3339
from test_support.system.registering import REQUEST_SECONDS_MAX, USER
from test_support.waits import HANGS_AFTER_SECONDS

CLIENTS = 4
ENOUGH = 40
"""Requests before the replacement, and after it."""
PAUSE_SECONDS = 0.02
WAIT_SECONDS = 2
"""Of a request that waits until an order is decided."""
ITEM = {"name": "pen", "type": "pen", "origin": "BJ", "price": "1.00"}

log = logging.getLogger(__name__)

Send = Callable[..., Awaitable[Json]]
"""Sends a request with a method, to an API, of a path; the response, empty if it failed."""


@dataclass(slots=True)
class Traffic:
    """Clients of all APIs. A request is sent once; it fails with no response, or 401 or 5xx."""

    hometown: Hometown
    hour: datetime
    succeeded: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    slowest_seconds: float = 0
    orders: list[str] = field(default_factory=list)
    is_over: bool = False

    async def run(self) -> None:
        """Register, move, order, wait, and read hours, until it is over."""
        async with self._client() as send:
            listed = await send("POST", "orders-api", "/v1/items", json=self._since(ITEM))
            while not self.is_over:
                await self._act(send, listed["item_id"])

    async def _act(self, send: Send, item: str) -> None:
        made = await send("POST", "users-api", "/v1/users", json=self._since(USER))
        if user := made.get("user_id"):
            await send("POST", "users-api", f"/v1/users/{user}/moves", json={"address": "SH"})
            lines = [{"item_id": item, "quantity": 1}]
            order = {"user_id": user, "lines": lines, "ordered_at": rfc3339(self.hour)}
            made = await send("POST", "orders-api", "/v1/orders", json=order)
        if order_id := made.get("order_id"):
            self.orders.append(order_id)
            wait = {"wait": WAIT_SECONDS}
            await send("GET", "orders-api", f"/v1/orders/{order_id}", params=wait)
        await send("GET", "analytics-api", "/v1/hours")
        await asyncio.sleep(PAUSE_SECONDS)

    def _since(self, body: Json) -> Json:
        return {**body, "effective_at": rfc3339(self.hour)}

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Send]:
        """Sends requests on connections of its own, which it keeps."""
        hometown = self.hometown

        async def send(method: str, api: str, path: str, **content: Any) -> Json:
            url, headers = hometown.addresses[api] + path, hometown.headers(api)
            began = time.monotonic()
            try:
                answer = await client.request(method, url, headers=headers, **content)
            except httpx.TransportError as error:
                self.failed[f"{api}: {error!r}"] += 1
                return {}
            finally:
                self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began)
            if answer.is_server_error or answer.status_code == httpx.codes.UNAUTHORIZED:
                self.failed[f"{api}: {answer.status_code} {answer.text}"] += 1
                return {}
            answer.raise_for_status()
            self.succeeded += 1
            return dict(answer.json())

        async with httpx.AsyncClient(
            timeout=REQUEST_SECONDS_MAX, verify=hometown.verify, trust_env=False
        ) as client:
            yield send

    async def until(self, succeeded: int) -> None:
        async with asyncio.timeout(HANGS_AFTER_SECONDS):
            while self.succeeded < succeeded:
                await asyncio.sleep(PAUSE_SECONDS)


async def send_during(
    hometown: Hometown, hour: datetime, happening: Callable[[], object]
) -> Traffic:
    """Send requests before, during and after what happens."""
    traffic = Traffic(hometown, hour)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(CLIENTS):
            tasks.create_task(traffic.run())
        try:
            await traffic.until(ENOUGH)
            await asyncio.to_thread(happening)
            await traffic.until(traffic.succeeded + ENOUGH)
        finally:
            traffic.is_over = True
    log.info("%d requests, slowest %.1f s", traffic.succeeded, traffic.slowest_seconds)
    return traffic


def send_while(hometown: Hometown, hour: datetime, happening: Callable[[], object]) -> Traffic:
    """Send requests before, during and after what happens; the last orders are decided."""
    traffic = asyncio.run(send_during(hometown, hour, happening))
    last = traffic.orders[-CLIENTS:]
    assert len(last) == CLIENTS
    assert "pending" not in {hometown.wait_for_decision(each)["status"] for each in last}
    return traffic
