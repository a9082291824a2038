"""The data that attacks aim at: a victim with an order, an attacker who is a user, and an item."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from local_stack.run_folder import RunFolder
from local_stack.testing import bearer
from shared.runtime.identifiers import new_id
from test_support.system.clients import Hometown, Json, rfc3339
from test_support.system.eventually import eventually

PROFILE = {"name": "Victor", "address": "BJ", "gender": "other", "credit_limit": "10000.00"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Both users came with tokens of their own."""

    hometown: Hometown
    folder: RunFolder
    victim: str
    attacker: str
    item: str
    order: str
    """The victim's, confirmed."""
    placement: Json
    """The request that placed it, and its idempotency key."""
    key: str

    def caller(self, name: str) -> dict[str, str]:
        """The header of `victim`, `attacker`, `clerk` or `analyst`."""
        subject = {"victim": self.victim, "attacker": self.attacker}.get(name)
        return bearer(self.folder, "user" if subject else name, subject)

    def filled(self, text: str) -> str:
        """The text with the ids of this scene in it: {victim}, {order}, …"""
        for name in ("victim", "attacker", "item", "order"):
            text = text.replace(f"{{{name}}}", getattr(self, name))
        return text

    def send(
        self,
        method: str,
        service: str,
        path: str,
        *,
        headers: Any = (),
        content: bytes | None = None,
        body: Any = None,
    ) -> httpx.Response:
        """`body` is sent as JSON, with the ids of this scene in it."""
        url = self.hometown.addresses[service] + self.filled(path)
        given = httpx.Headers(headers)
        if body is not None:
            content = self.filled(json.dumps(body)).encode()
        if content is not None:
            given.setdefault("Content-Type", "application/json")
        return self.hometown.http.request(method, url, headers=given, content=content)

    def state(self) -> Mapping[str, Json]:
        """All data that an attack might change, as a clerk reads it."""
        users, orders = "users-api", "orders-api"
        looks = {
            (users, "/v1/users/{victim}"),
            (users, "/v1/users/{attacker}"),
            (users, "/v1/users/{victim}/events"),
            (users, "/v1/users/{attacker}/events"),
            (orders, "/v1/items/{item}"),
            (orders, "/v1/orders/{order}/events"),
            (orders, "/v1/orders?user_id={victim}"),
            (orders, "/v1/orders?user_id={attacker}"),
        }
        clerk = self.caller("clerk")
        return {
            path: self.send("GET", service, path, headers=clerk).raise_for_status().json()
            for service, path in looks
        }


def new_user(hometown: Hometown, folder: RunFolder) -> str:
    """Register a user with a token of their own."""
    user_id = str(new_id())
    answer = hometown.http.post(
        f"{hometown.addresses['users-api']}/v1/users",
        json=PROFILE,
        headers=bearer(folder, "user", user_id),
    )
    assert answer.status_code == 201, answer.text
    assert answer.json()["user_id"] == user_id
    return user_id


def new_scene(hometown: Hometown, folder: RunFolder, ordered_at: datetime) -> Scene:
    victim, attacker = new_user(hometown, folder), new_user(hometown, folder)
    item = hometown.list_item(name="thing", type="phone", origin="BJ", price="10.00")["item_id"]
    key = f"order-of-{victim}"
    placement: Json = {
        "user_id": victim,
        "lines": [{"item_id": item, "quantity": 1}],
        "ordered_at": rfc3339(ordered_at),
    }
    placed = hometown.http.post(
        f"{hometown.addresses['orders-api']}/v1/orders",
        json=placement,
        headers=bearer(folder, "user", victim) | {"Idempotency-Key": key},
    )
    assert placed.status_code == 201, placed.text
    order = placed.json()["order_id"]
    assert hometown.wait_for_decision(order)["status"] == "confirmed"
    eventually(
        lambda: [each["status"] for each in hometown.list_orders(user_id=victim)["orders"]],
        lambda statuses: statuses == ["confirmed"],
        what="the order is listed as confirmed",
    )
    return Scene(
        hometown=hometown,
        folder=folder,
        victim=victim,
        attacker=attacker,
        item=item,
        order=order,
        placement=placement,
        key=key,
    )
