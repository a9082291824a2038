"""HTTP clients of other services, for the journey of an order only: no decision depends on them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import httpx
from pydantic import TypeAdapter, ValidationError

from shared.eventsourcing.event_store import rfc3339
from shared.web.tls import create_client_context

ANSWER_SECONDS_MAX = 2.0

T = TypeVar("T")


@dataclass(eq=False)
class UpstreamUnavailable(Exception):
    """Another service is unavailable, or its response is not as documented."""

    service: str
    reason: str

    def __str__(self) -> str:
        return f"{self.service} is unavailable: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditDecision:
    type: str
    recorded_at: datetime
    trace_id: str | None
    data: Mapping[str, str]
    """The fields of the event; a refusal has a `reason`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """The credit decisions of users-svc on an order."""

    decisions: Sequence[CreditDecision]
    parked: Parked | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The batch of analytics that read a record."""

    batch_id: int
    committed_at: datetime
    trace_id: str
    watermark: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What is counted of one user and item in an hour."""

    item_id: UUID
    address: str
    purchases: int
    quantity: int
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class UserHour:
    cells: Sequence[Cell]


class ServiceClients:
    """Requests have the caller's own token: a caller sees only what they can read there."""

    def __init__(
        self, client: httpx.AsyncClient, *, users_url: str | None, analytics_url: str | None
    ) -> None:
        self._client = client
        self._users_url = users_url
        self._analytics_url = analytics_url

    async def get_credit(self, user_id: UUID, order_id: UUID, authorization: str) -> Credit:
        """Raises UpstreamUnavailable."""
        path = f"/v1/users/{user_id}/credits/{order_id}"
        answer = await self._get("users-svc", self._users_url, path, {}, authorization)
        return parse_answer("users-svc", Credit, answer)

    async def find_reading(
        self, topic: str, partition: int, offset: int, recorded_at: datetime, authorization: str
    ) -> Reading | None:
        """None while no batch has read the record. Raises UpstreamUnavailable."""
        query = {
            "topic": topic,
            "partition": str(partition),
            "offset": str(offset),
            "recorded_at": rfc3339(recorded_at),
        }
        answer = await self._get(
            "analytics", self._analytics_url, "/v1/readings", query, authorization
        )
        missing = answer.status_code == httpx.codes.NOT_FOUND
        return None if missing else parse_answer("analytics", Reading, answer)

    async def get_cells(self, hour: datetime, user_id: UUID, authorization: str) -> Sequence[Cell]:
        """Raises UpstreamUnavailable."""
        path = f"/v1/hours/{rfc3339(hour)}/users/{user_id}"
        answer = await self._get("analytics", self._analytics_url, path, {}, authorization)
        return parse_answer("analytics", UserHour, answer).cells

    async def _get(
        self, service: str, url: str | None, path: str, query: dict[str, str], authorization: str
    ) -> httpx.Response:
        if url is None:
            raise UpstreamUnavailable(service, "its address is not set")
        try:
            return await self._client.get(
                url + path, params=query, headers={"Authorization": authorization}
            )
        except httpx.HTTPError as error:
            raise UpstreamUnavailable(service, type(error).__name__) from error


def parse_answer(service: str, form: type[T], answer: httpx.Response) -> T:
    """Raises UpstreamUnavailable if the response is not the documented one."""
    if not answer.is_success:
        raise UpstreamUnavailable(service, f"it returned status {answer.status_code}")
    try:
        return TypeAdapter(form).validate_json(answer.content)
    except ValidationError as error:
        raise UpstreamUnavailable(
            service, f"{error.error_count()} fields are not as expected"
        ) from error


@asynccontextmanager
async def open_service_clients(
    users_url: str | None, analytics_url: str | None, ca_file: Path | None = None
) -> AsyncIterator[ServiceClients]:
    """Servers are verified as by `create_client_context`."""
    verify = create_client_context(ca_file)
    async with httpx.AsyncClient(timeout=ANSWER_SECONDS_MAX, verify=verify) as client:
        yield ServiceClients(client, users_url=users_url, analytics_url=analytics_url)
