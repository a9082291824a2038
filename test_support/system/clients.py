"""Thin clients of Hometown's HTTP APIs: one method per call, JSON in and out."""

import json
import secrets
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from local_stack import issuer
from local_stack.run_folder import RunFolder
from shared.web.tls import create_client_context

TIMEOUT_SECONDS = 40
"""Longer than the longest wait that an API offers."""
WAIT_SECONDS = 30
TRACES_MAX = 2_000
"""Traces of a service that Jaeger is asked for at once."""
MICROSECONDS_MAX = 4_000_000_000_000_000
"""An instant that is always to come, in microseconds since 1970."""

CALLERS = {"users-api": "clerk", "orders-api": "clerk"} | {
    "analytics-api": "analyst",
    "analytics-faust": "analyst",
}
"""The roles in which these clients call."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Hometown:
    """All APIs of one running system, by its addresses; tokens by the process they are for."""

    addresses: Mapping[str, str]
    tokens: Mapping[str, str]
    http: httpx.Client
    verify: ssl.SSLContext
    """Trusts the authority of the system, if it has one."""

    @classmethod
    def of_run_folder(cls, folder: Path) -> "Hometown":
        """The system that `make up` started in this folder. Raises Failure if there is none."""
        addresses = json.loads((folder / "addresses.json").read_text())
        tokens = {name: issuer.token(RunFolder(folder), role) for name, role in CALLERS.items()}
        authority = RunFolder(folder).authority
        verify = create_client_context(authority if authority.exists() else None)
        client = httpx.Client(timeout=TIMEOUT_SECONDS, verify=verify, trust_env=False)
        return cls(addresses, tokens, client, verify)

    def headers(self, process: str) -> dict[str, str]:
        """The bearer token for a service; Jaeger requires none."""
        token = self.tokens.get(process)
        return {"Authorization": f"Bearer {token}"} if token else {}

    def register_user(self, *, key: str | None = None, **user: object) -> Json:
        return self._post("users-api", "/v1/users", user, key)

    def get_user(self, user_id: str) -> Json:
        return self._get("users-api", f"/v1/users/{user_id}")

    def list_users(self, **query: object) -> Json:
        return self._get("users-api", "/v1/users", **query)

    def move_user(self, user_id: str, *, key: str | None = None, **move: object) -> Json:
        return self._post("users-api", f"/v1/users/{user_id}/moves", move, key)

    def delete_user(self, user_id: str) -> bool:
        """True when the user is deleted."""
        process = "users-api"
        path = f"{self.addresses[process]}/v1/users/{user_id}"
        answer = self.http.delete(path, headers=self.headers(process))
        return answer.status_code == httpx.codes.NO_CONTENT

    def list_item(self, *, key: str | None = None, **item: object) -> Json:
        return self._post("orders-api", "/v1/items", item, key)

    def reprice_item(self, item_id: str, **price: object) -> Json:
        return self._post("orders-api", f"/v1/items/{item_id}/price-changes", price, None)

    def list_items(self, **query: object) -> Json:
        return self._get("orders-api", "/v1/items", **query)

    def place_order(
        self,
        user_id: str,
        lines: Sequence[tuple[str, int]],
        ordered_at: datetime,
        *,
        key: str | None = None,
    ) -> Json:
        """`lines` are (item id, quantity)."""
        order: Json = {
            "user_id": user_id,
            "lines": [{"item_id": item, "quantity": quantity} for item, quantity in lines],
            "ordered_at": rfc3339(ordered_at),
        }
        return self._post("orders-api", "/v1/orders", order, key)

    def get_order(self, order_id: str, wait: float = 0) -> Json:
        return self._get("orders-api", f"/v1/orders/{order_id}", wait=wait)

    def list_order_events(self, order_id: str) -> Json:
        return self._get("orders-api", f"/v1/orders/{order_id}/events")

    def list_orders(self, **query: object) -> Json:
        return self._get("orders-api", "/v1/orders", **query)

    def wait_for_decision(self, order_id: str) -> Json:
        """The order as soon as it is no longer pending, or after WAIT_SECONDS."""
        return self.get_order(order_id, wait=WAIT_SECONDS)

    def cancel_order(self, order_id: str, reason: str = "changed-my-mind") -> Json:
        return self._post("orders-api", f"/v1/orders/{order_id}/cancel", {"reason": reason}, None)

    def journey(self, order_id: str) -> Json:
        return self._get("orders-api", f"/v1/orders/{order_id}/journey")

    def hour(self, hour: datetime, by: str = "origin") -> Json:
        return self._get("analytics-api", f"/v1/hours/{rfc3339(hour)}", by=by)

    def list_hours(self, **query: object) -> Json:
        return self._get("analytics-api", "/v1/hours", **query)

    def status(self) -> Json:
        return self._get("analytics-api", "/v1/status")

    def hour_by_arrival(self, hour: datetime) -> Json:
        return self._get("analytics-faust", f"/v1/hours/{rfc3339(hour)}")

    def differences(self, since: datetime, until: datetime) -> Json:  # part: faust
        query = {"from": rfc3339(since), "to": rfc3339(until)}
        return self._get("analytics-faust", "/v1/differences", **query)

    def jaeger_answers(self) -> bool:
        """Whether Jaeger responds; everything else works without it."""
        try:
            return self.http.get(f"{self.addresses['jaeger']}/api/services").is_success
        except httpx.TransportError:
            return False

    def traces_of_order(self, order_id: str) -> list[Json]:
        """The traces in Jaeger that began with the placement of an order."""
        tags = json.dumps({"app.order.id": order_id})
        return self._find_traces(service="orders-api", tags=tags, limit=5, lookback="7d")

    def traces_of_service(self, service: str) -> list[Json]:
        """The newest traces in Jaeger with spans of a service."""
        return self._find_traces(service=service, limit=500, lookback="1h")

    def traces_since(self, microseconds: int) -> list[Json]:
        """Read all traces in Jaeger with spans that began since then, in microseconds since 1970.

        Raises:
            AssertionError: there are more than Jaeger was asked for.
        """
        found: dict[str, Json] = {}
        query = {"start": microseconds, "end": MICROSECONDS_MAX, "limit": TRACES_MAX}
        for service in self._get("jaeger", "/api/services")["data"] or []:
            traces = self._find_traces(service=service, **query)
            assert len(traces) < TRACES_MAX, f"{service} has as many traces or more"
            found |= {trace["traceID"]: trace for trace in traces}
        return list(found.values())

    @contextmanager
    def in_one_trace(self) -> Iterator[str]:
        """Make all requests inside the block in one trace; yield its id."""
        trace_id, span_id = secrets.token_hex(16), secrets.token_hex(8)
        self.http.headers["traceparent"] = f"00-{trace_id}-{span_id}-01"
        try:
            yield trace_id
        finally:
            del self.http.headers["traceparent"]

    def path_of_trace(self, trace_id: str) -> str:
        """The path of its page; a Jaeger that was built here has only the API."""
        has_page = "not the Jaeger UI" not in self.http.get(self.addresses["jaeger"]).text
        return f"/trace/{trace_id}" if has_page else f"/api/traces/{trace_id}"

    def trace(self, trace_id: str) -> Json | None:
        """A trace in Jaeger, None if there is none yet."""
        answer = self.http.get(f"{self.addresses['jaeger']}/api/traces/{trace_id}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        answer.raise_for_status()
        [trace] = answer.json()["data"]
        return dict(trace)

    def _find_traces(self, **query: object) -> list[Json]:
        return list(self._get("jaeger", "/api/traces", **query)["data"] or [])

    def _get(self, process: str, path: str, /, **query: Any) -> Json:
        answer = self.http.get(
            self.addresses[process] + path, params=query, headers=self.headers(process)
        )
        return body_of(answer)

    def _post(self, service: str, path: str, body: Json, key: str | None) -> Json:
        headers = self.headers(service) | ({"Idempotency-Key": key} if key else {})
        answer = self.http.post(self.addresses[service] + path, json=body, headers=headers)
        return body_of(answer)


def body_of(answer: httpx.Response) -> Json:
    """The JSON of an answer. Raises httpx.HTTPStatusError, with the problem in its text."""
    if answer.is_error:
        raise httpx.HTTPStatusError(
            f"{answer.request.method} {answer.url} -> {answer.status_code} {answer.text}",
            request=answer.request,
            response=answer,
        )
    return dict(answer.json())


def sum_lag(status: Json) -> int | None:
    """The records that analytics has not counted; None while Kafka does not report it."""
    lag = status["lag"]
    if lag is None:
        return None
    return sum(int(behind) for partitions in lag.values() for behind in partitions.values())


def rfc3339(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
