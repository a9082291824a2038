"""Which users order which items: the same for each client, in a file that other processes read."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.delivery import http_client
from benchmarks.delivery.http_client import Connection
from local_stack import issuer
from local_stack.run_folder import RunFolder
from shared.runtime.identifiers import new_id

LINES = 2
PRICE = "1.00"
CREDIT_LIMIT = "9999999999.00"
LONG_AGO = "2020-01-01T00:00:00Z"
WAIT_SECONDS = 30
"""The longest that the API supports."""
FILE = "shop.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """`token` has all scopes that are needed here."""

    token: str
    users: Sequence[str]
    items: Sequence[str]

    @classmethod
    def load(cls, path: Path) -> "Shop":
        return cls(**json.loads(path.read_text()))

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))
        path.chmod(0o600)

    def placement(self, number: int, *, with_key: bool = False) -> bytes:
        """The request that places an order; users and items take turns."""
        items = [self.items[(number + line) % len(self.items)] for line in range(LINES)]
        body = {
            "user_id": self.users[number % len(self.users)],
            "lines": [{"item_id": item, "quantity": 1} for item in items],
        }
        key = {"Idempotency-Key": str(new_id())} if with_key else {}
        return http_client.create_request(
            "POST", "/v1/orders", authorize(self.token) | key, json.dumps(body).encode()
        )

    def decision(self, order_id: str) -> bytes:
        """The request that is answered as soon as the order is no longer pending."""
        path = f"/v1/orders/{order_id}?wait={WAIT_SECONDS}"
        return http_client.create_request("GET", path, authorize(self.token))


def authorize(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def create_token(folder: RunFolder) -> str:
    """A token with all scopes of the shop."""
    return issuer.token(folder, "clerk")


async def list_items(address: str, token: str, count: int) -> list[str]:
    """New items, by the orders-api at host:port."""
    item = {"type": "thing", "origin": "DE-BE", "price": PRICE, "effective_at": LONG_AGO}
    async with http_client.connect(address) as connection:
        made = [
            await create(connection, "/v1/items", token, item | {"name": f"item {number}"})
            for number in range(count)
        ]
    return [each["item_id"] for each in made]


async def register_users(
    address: str, token: str, count: int, *, credit_limit: str = CREDIT_LIMIT
) -> list[str]:
    """New users, by default with enough credit for all orders, by the users-api at host:port."""
    user = {"address": "DE-BE", "gender": "other", "credit_limit": credit_limit}
    async with http_client.connect(address) as connection:
        made = [
            await create(
                connection,
                "/v1/users",
                token,
                user | {"name": f"user {number}", "effective_at": LONG_AGO},
            )
            for number in range(count)
        ]
    return [each["user_id"] for each in made]


async def create(
    connection: Connection, path: str, token: str, body: dict[str, str]
) -> dict[str, Any]:
    request = http_client.create_request("POST", path, authorize(token), json.dumps(body).encode())
    created: dict[str, Any] = json.loads(await connection.ask(request, status=201))
    return created
