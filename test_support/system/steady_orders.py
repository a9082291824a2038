"""Orders of one user at a steady rate, from a client that repeats what a busy system refuses."""

import asyncio
from datetime import datetime

import httpx

from test_support.system.clients import Hometown, rfc3339

REQUEST_SECONDS_MAX = 60
ATTEMPTS_MAX = 60
KEPT_SECONDS = 1
"""Less than the servers keep a connection: a request on one that they just close would fail."""


def open_account(hometown: Hometown, since: datetime, *, key: str | None = None) -> tuple[str, str]:
    """The ids of a user with credit for a million orders, and of a local item for 1.00; with a
    `key`, each time the same ones."""
    effective_at = rfc3339(since)
    user = hometown.register_user(
        key=key and f"{key}/user",
        name="Jill",
        address="BJ",
        gender="female",
        credit_limit="1000000.00",
        effective_at=effective_at,
    )
    item = hometown.list_item(
        key=key and f"{key}/item",
        name="pen",
        type="pen",
        origin="BJ",
        price="1.00",
        effective_at=effective_at,
    )
    return str(user["user_id"]), str(item["item_id"])


async def place_orders(
    hometown: Hometown, user: str, item: str, hour: datetime, *, count: int, per_second: float
) -> list[str]:
    """Place orders, each at its time, and return their ids.

    Raises:
        HTTPStatusError: one was refused for another reason than too many waiting orders.
    """
    body = {
        "user_id": user,
        "lines": [{"item_id": item, "quantity": 1}],
        "ordered_at": rfc3339(hour),
    }
    url, headers = f"{hometown.addresses['orders-api']}/v1/orders", hometown.headers("orders-api")
    async with httpx.AsyncClient(
        timeout=httpx.Timeout(REQUEST_SECONDS_MAX, pool=None),  # requests wait for a connection
        limits=httpx.Limits(keepalive_expiry=KEPT_SECONDS),
        verify=hometown.verify,
        trust_env=False,
    ) as client:

        async def place(number: int) -> str:
            await asyncio.sleep(number / per_second)
            for _ in range(ATTEMPTS_MAX):
                response = await client.post(url, json=body, headers=headers)
                if response.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                    break
                # New orders are refused while earlier ones wait for the worker.
                await asyncio.sleep(float(response.headers["Retry-After"]))
            response.raise_for_status()
            return str(response.json()["order_id"])

        return await asyncio.gather(*(place(number) for number in range(count)))
