"""Orders placed and followed: a client of the APIs and of Jaeger, as a developer would be one."""

import asyncio
import itertools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx

from console_svc.catalog import JAEGER, Entry

Json = dict[str, Any]

REQUEST_SECONDS_MAX = 15.0
KNOWN_SINCE = "2015-12-11T00:00:00Z"
FIRST_HOUR = datetime(2016, 11, 11, 1, tzinfo=UTC)
"""The hour after that of the sample, where nothing newer is counted: an order of today would make
those of the sample too late to count."""
PLACES = ("BJ", "SH", "SZ", "GZ")
GOODS = (("phone", "2999.00"), ("pen", "1.50"), ("watch", "499.00"), ("tea", "12.80"))
CREDIT_LIMIT = "100000000.00"

LOAD_PER_SECOND = 20
LOAD_SECONDS = 30
LOAD_USERS, LOAD_ITEMS = 12, 6
OPEN_REQUESTS_MAX = 60
"""Of the load; further orders wait, and are then late, rather than being more at once."""


REASON_CHARACTERS_MAX = 80
BUSY = (429, 503)


class CallFailed(Exception):
    """An API refused, or did not respond; the text names it."""


class CallRefused(CallFailed):
    """An API has too much to do, and asks its callers to try again later."""


@dataclass(slots=True)
class Load:
    """What a load has done so far.

    An order is refused where too many before it wait, and fails where there is no response.
    """

    placed: int = 0
    refused: int = 0
    failed: int = 0
    reasons: set[str] = field(default_factory=set)

    def describe(self) -> str:
        parts = [f"{self.placed:,} orders placed"]
        if self.refused:
            parts.append(f"{self.refused:,} refused while earlier ones waited")
        if self.failed:
            parts.append(f"{self.failed:,} failed: {', '.join(sorted(self.reasons))}")
        return ", ".join(parts)


class Shop:
    """Calls the APIs with tokens of the issuer for development."""

    def __init__(
        self, entries: Sequence[Entry], client: httpx.AsyncClient, token: Callable[[str], str]
    ) -> None:
        self._urls = {entry.name: entry.url for entry in entries}
        self._client = client
        self._token = token

    async def place_order(self) -> str:
        """Place an order of a new user for a new item from where they live; the id of the order."""
        place = random.choice(PLACES)  # noqa: S311 - which place is no secret
        user, item = await asyncio.gather(self._register(place), self._list_item(place))
        return await self._place(user, item, await self.find_hour())

    async def find_hour(self) -> datetime:
        """An hour in which an order still counts: the newest one that has orders, or the first."""
        status = await self._get("analytics-api", "/v1/status")
        query = {"from": status["watermark"]} if status["watermark"] else {}
        hours = (await self._get("analytics-api", "/v1/hours", **query))["hours"]
        newest = [datetime.fromisoformat(each["hour"]) for each in hours[-1:]]
        return max([FIRST_HOUR, *newest])

    async def send_load(self, load: Load) -> None:
        """Place orders at a steady rate, whatever happens to the processes meanwhile."""
        places = list(itertools.islice(itertools.cycle(PLACES), LOAD_USERS))
        users = await asyncio.gather(*(self._register(place) for place in places))
        items = await asyncio.gather(*(self._list_item(place) for place in places[:LOAD_ITEMS]))
        hour = await self.find_hour()
        free = asyncio.Semaphore(OPEN_REQUESTS_MAX)
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(LOAD_PER_SECOND * LOAD_SECONDS):
                due = began + number / LOAD_PER_SECOND
                await asyncio.sleep(max(due - time.monotonic(), 0))
                if time.monotonic() - began > 2 * LOAD_SECONDS:
                    return
                await free.acquire()
                user, item = random.choice(users), random.choice(items)  # noqa: S311
                group.create_task(self._add_to(load, free, user, item, hour))

    async def _add_to(
        self, load: Load, free: asyncio.Semaphore, user: str, item: str, hour: datetime
    ) -> None:
        try:
            await self._place(user, item, hour)
            load.placed += 1
        except CallRefused:
            load.refused += 1
        except CallFailed as error:
            load.failed += 1
            load.reasons.add(str(error)[:REASON_CHARACTERS_MAX])
        finally:
            free.release()

    async def read_journey(self, order_id: str) -> Json:
        """Raises CallFailed."""
        return await self._get("orders-api", f"/v1/orders/{order_id}/journey")

    async def find_trace(self, trace_id: str) -> Json | None:
        """A trace in Jaeger; None if there is none yet, or no Jaeger."""
        url = self._urls.get(JAEGER)
        if url is None:
            return None
        try:
            response = await self._client.get(
                f"{url}/api/traces/{trace_id}", timeout=REQUEST_SECONDS_MAX
            )
            found = response.raise_for_status().json()["data"]
        except (httpx.HTTPError, ValueError, LookupError):
            return None
        return dict(found[0]) if found else None

    async def _register(self, place: str) -> str:
        user = {
            "name": random.choice(("Ann", "Bo", "Kim", "Lee", "Max", "Noa")),  # noqa: S311
            "address": place,
            "gender": random.choice(("female", "male")),  # noqa: S311
            "credit_limit": CREDIT_LIMIT,
            "effective_at": KNOWN_SINCE,
        }
        return str((await self._post("users-api", "/v1/users", user))["user_id"])

    async def _list_item(self, place: str) -> str:
        name, price = random.choice(GOODS)  # noqa: S311
        item = {
            "name": name,
            "type": name,
            "origin": place,
            "price": price,
            "effective_at": KNOWN_SINCE,
        }
        return str((await self._post("orders-api", "/v1/items", item))["item_id"])

    async def _place(self, user: str, item: str, hour: datetime) -> str:
        order = {
            "user_id": user,
            "lines": [{"item_id": item, "quantity": 1}],
            "ordered_at": hour.isoformat().replace("+00:00", "Z"),
        }
        return str((await self._post("orders-api", "/v1/orders", order))["order_id"])

    async def _get(self, process: str, path: str, **query: str) -> Json:
        return await self._call("GET", process, path, params=query)

    async def _post(self, process: str, path: str, body: Json) -> Json:
        return await self._call("POST", process, path, json=body)

    async def _call(self, method: str, process: str, path: str, **content: Any) -> Json:
        url = self._urls.get(process)
        if url is None:
            raise CallFailed(f"this stack has no {process}")
        role = "analyst" if process.startswith("analytics") else "clerk"
        headers = {"Authorization": f"Bearer {self._token(role)}"}
        try:
            response = await self._client.request(
                method,
                f"{url}{path}",
                headers=headers,
                timeout=REQUEST_SECONDS_MAX,
                **content,
            )
        except httpx.HTTPError as error:
            raise CallFailed(f"{process} does not respond: {type(error).__name__}") from error
        if response.status_code in BUSY:
            raise CallRefused(f"{process}: {read_problem(response)}")
        if response.is_error:
            raise CallFailed(f"{process}: {read_problem(response)}")
        return dict(response.json())


def read_problem(response: httpx.Response) -> str:
    try:
        content = response.json()
        return str(content.get("detail") or content["title"])
    except (ValueError, LookupError, AttributeError):
        return f"status {response.status_code}"
