"""Clients that place orders, move users and read, all the time; each request has one effect.

A write that fails is repeated with its idempotency key until it is acknowledged. The first try of
each request counts: it failed if there was no response, or one of 401 or 5xx. An order that is
refused because earlier ones wait too long has not failed: it is counted apart.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from random import Random
from typing import Any

import httpx

from fetching.errors import Failure
from shared.runtime.identifiers import new_id
from test_support.system.clients import Hometown, Json, rfc3339
from verification.drill.ledger import Ledger
from verification.load.sender import AGAIN, OVERLOADED

CLIENTS = 4
USERS_PER_CLIENT = 3
ITEMS = 4
ORDERS_SHARE, MOVES_SHARE = 0.7, 0.15
"""Of the requests; the others read hours."""
WAITS_SHARE = 0.3
"""Of the orders, those whose client waits until they are decided."""
PLACES = ("BJ", "SH", "SZ")
CREDIT_LIMIT = "9999999999.99"
PRICE = "10.00"
PAUSE_SECONDS = 0.1
"""Between two requests of a client, on average."""
TRY_SECONDS_MAX = 45
"""For one response; more than an API needs to report that its database is unavailable."""
REPEAT_SECONDS_MAX = 180
"""Until a request succeeds; more than a killed stack needs to start again."""
REPEAT_PAUSE_SECONDS = 0.2
RECOVERY_SECONDS_MAX = 300
POLL_SECONDS = 0.1
WAIT_SECONDS = 2
"""Of a request that waits until an order is decided."""
SINCE, LONG_AGO = timedelta(hours=8), timedelta(hours=5)
"""Of users and items, and of the first orders: more than the lateness ago, so that there is an hour
that is final."""


class NotRecovered(Exception):
    """An order was not decided or not counted in time."""


@dataclass(slots=True)
class Tally:
    """The requests of one step. `failed` has the first tries that failed, by reason; `overloaded`
    counts those that were refused because earlier orders waited."""

    requests: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    overloaded: int = 0
    slowest_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Seconds until an order was decided, and until it was counted (None: no job runs)."""

    decided: float
    counted: float | None

    def after(self, seconds: float) -> "Recovery":
        """The same, seen from so many seconds earlier."""
        counted = None if self.counted is None else seconds + self.counted
        return Recovery(decided=seconds + self.decided, counted=counted)


class Traffic:
    """The clients of one system; all but the seed can be replaced between loads."""

    def __init__(
        self, hometown: Hometown, seed: int, *, clients: int = CLIENTS, is_counted: bool = True
    ) -> None:
        self.hometown = hometown
        self._clients = clients
        self.is_counted = is_counted
        self.ledger = Ledger()
        self.tally = Tally()
        self._random = Random(seed)
        self._items: list[str] = []
        self._users: list[str] = []
        self._http = httpx.AsyncClient(timeout=TRY_SECONDS_MAX, trust_env=False)

    async def close(self) -> None:
        await self._http.aclose()

    async def open_shop(self) -> None:
        """Register users, list items, and place orders in an hour that will be final."""
        now = datetime.now(UTC)
        since = rfc3339(now - SINCE)
        item = {"name": "pen", "type": "pen", "origin": PLACES[0], "price": PRICE}
        user = {"name": "Jack", "gender": "male", "credit_limit": CREDIT_LIMIT}
        for _ in range(ITEMS):
            made = await self._send("orders-api", "/v1/items", item | {"effective_at": since})
            self._items.append(made["item_id"])
        for number in range(self._clients * USERS_PER_CLIENT):
            home = {"address": PLACES[number % len(PLACES)], "effective_at": since}
            made = await self._send("users-api", "/v1/users", user | home)
            self._users.append(made["user_id"])
        for each in self._users:
            await self.place(each, now - LONG_AGO)

    @asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        """The clients work inside; at exit, each request has been answered.

        Raises:
            Failure: a request was refused, or not answered in time.
        """
        stopping = asyncio.Event()
        numbers = range(self._clients)
        clients = [asyncio.create_task(self._work(number, stopping)) for number in numbers]
        try:
            yield
        finally:
            stopping.set()
            await asyncio.gather(*clients)

    async def _work(self, number: int, stopping: asyncio.Event) -> None:
        chance = Random(self._random.random())
        users = self._users[number :: self._clients]
        while not stopping.is_set():
            user = chance.choice(users)
            act = chance.random()
            if act < ORDERS_SHARE:
                order = await self.place(user)
                if chance.random() < WAITS_SHARE:
                    await self.read("orders-api", f"/v1/orders/{order}", wait=WAIT_SECONDS)
            elif act < ORDERS_SHARE + MOVES_SHARE:
                await self.move(user, chance)
            else:
                await self.read("analytics-api", "/v1/hours")
            await asyncio.sleep(chance.expovariate(1 / PAUSE_SECONDS))

    async def place(self, user: str, ordered_at: datetime | None = None) -> str:
        """Place an order; its id."""
        body = {
            "user_id": user,
            "lines": [{"item_id": self._random.choice(self._items), "quantity": 1}],
            "ordered_at": rfc3339(ordered_at or datetime.now(UTC)),
        }
        made = await self._send("orders-api", "/v1/orders", body)
        self.ledger.orders.add(made["order_id"])
        return str(made["order_id"])

    async def move(self, user: str, chance: Random) -> None:
        """Move a user elsewhere."""
        home = await self.read("users-api", f"/v1/users/{user}")
        body = {"address": chance.choice([each for each in PLACES if each != home["address"]])}
        await self._send("users-api", f"/v1/users/{user}/moves", body)
        self.ledger.moves[user] += 1

    async def recover(self) -> Recovery:
        """Place an order now, and wait until it is decided and counted.

        Raises:
            NotRecovered: it was not, within RECOVERY_SECONDS_MAX.
        """
        began = time.monotonic()
        decided = "nothing"
        try:
            async with asyncio.timeout(RECOVERY_SECONDS_MAX):
                order = await self.place(self._users[0])
                path = f"/v1/orders/{order}"
                await self._until(is_decided, path, wait=WAIT_SECONDS)
                seconds = time.monotonic() - began
                decided = f"decided after {seconds:.1f} s"
                if not self.is_counted:
                    return Recovery(decided=seconds, counted=None)
                await self._until(is_counted, f"{path}/journey")
        except TimeoutError as error:
            raise NotRecovered(f"not counted after {RECOVERY_SECONDS_MAX} s; {decided}") from error
        return Recovery(decided=seconds, counted=time.monotonic() - began)

    async def _until(self, is_right: Callable[[Json], bool], path: str, **query: float) -> None:
        while True:
            if is_right(await self.read("orders-api", path, **query)):
                return
            await asyncio.sleep(POLL_SECONDS)

    async def read(self, process: str, path: str, **query: float) -> Json:
        return await self._request("GET", process, path, params=query)

    async def _send(self, process: str, path: str, body: Json) -> Json:
        return await self._request("POST", process, path, json=body, key=str(new_id()))

    async def _request(
        self, method: str, process: str, path: str, *, key: str | None = None, **content: Any
    ) -> Json:
        """The first response that is not temporary. Raises Failure."""
        own = {"Idempotency-Key": key} if key else {}
        deadline = time.monotonic() + REPEAT_SECONDS_MAX
        tally = self.tally
        tally.requests += 1
        is_first = True
        while True:
            began = time.monotonic()
            try:
                headers = self.hometown.headers(process) | own
                url = self.hometown.addresses[process] + path
                answer = await self._http.request(method, url, headers=headers, **content)
                if answer.is_success:
                    return dict(answer.json())
                reason = demand_temporary(answer)
                tally.overloaded += is_first and is_overloaded(answer)
            except httpx.TransportError as error:
                reason = type(error).__name__
            finally:
                tally.slowest_seconds = max(tally.slowest_seconds, time.monotonic() - began)
            if is_first and reason:
                tally.failed[f"{process}: {reason}"] += 1
            is_first = False
            if time.monotonic() > deadline:
                raise Failure(f"{method} {path} was not answered in {REPEAT_SECONDS_MAX} s")
            await asyncio.sleep(REPEAT_PAUSE_SECONDS)


def demand_temporary(answer: httpx.Response) -> str:
    """The reason of a response that can be another one later; empty if that is usual.

    Raises:
        Failure: the request was refused.
    """
    if is_overloaded(answer):
        return ""
    is_unauthorized = answer.status_code == HTTPStatus.UNAUTHORIZED
    if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR or is_unauthorized:
        return str(answer.status_code)
    if answer.status_code == HTTPStatus.CONFLICT and answer.json()["code"] in AGAIN:
        return ""
    raise Failure(f"{answer.request.method} {answer.url} -> {answer.status_code} {answer.text}")


def is_overloaded(answer: httpx.Response) -> bool:
    """Whether the API refuses new orders for now."""
    if answer.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
        return False
    return bool(answer.json()["code"] == OVERLOADED)


def is_decided(order: Json) -> bool:
    return bool(order["status"] != "pending")


def is_counted(journey: Json) -> bool:
    return any(hop["hop"] == "counted" for hop in journey["hops"])
