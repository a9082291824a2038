"""A client of analytics-spark, used for the comparison only."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import httpx
from pydantic import TypeAdapter, ValidationError

from analytics_faust.buyers import Totals
from analytics_faust.joins import to_cents
from shared.web.tls import create_client_context

ANSWER_SECONDS_MAX = 2.0


@dataclass(eq=False)
class UpstreamUnavailable(Exception):
    """analytics-spark gave no usable response."""

    reason: str

    def __str__(self) -> str:
        return f"analytics is unavailable: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    hour: datetime
    local_buyers: int
    purchases: int
    quantity: int
    amount: Decimal

    @property
    def totals(self) -> Totals:
        return Totals(
            local_buyers=self.local_buyers,
            purchases=self.purchases,
            quantity=self.quantity,
            cents=to_cents(self.amount),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    hours: Sequence[Hour]


PAGE: TypeAdapter[Page] = TypeAdapter(Page)


class Spark:
    """Forwards the caller's token, so a caller sees here only what they can see there."""

    def __init__(self, client: httpx.AsyncClient, url: str | None) -> None:
        self._client = client
        self._url = url

    async def hours(
        self, query: Mapping[str, str], authorization: str
    ) -> Sequence[tuple[datetime, Totals]]:
        """The hours of `GET /v1/hours` there. Raises UpstreamUnavailable."""
        if self._url is None:
            raise UpstreamUnavailable("its address is not set")
        try:
            response = await self._client.get(
                f"{self._url}/v1/hours", params=query, headers={"Authorization": authorization}
            )
        except httpx.HTTPError as error:
            raise UpstreamUnavailable(type(error).__name__) from error
        if not response.is_success:
            raise UpstreamUnavailable(f"status {response.status_code}")
        try:
            page = PAGE.validate_json(response.content)
        except ValidationError as error:
            raise UpstreamUnavailable(
                f"{error.error_count()} fields of the response do not match the schema"
            ) from error
        return [(each.hour, each.totals) for each in page.hours]


@asynccontextmanager
async def open_spark(url: str | None, ca_file: Path | None = None) -> AsyncIterator[Spark]:
    """Its server is verified as by `create_client_context`."""
    verify = create_client_context(ca_file)
    async with httpx.AsyncClient(timeout=ANSWER_SECONDS_MAX, verify=verify) as client:
        yield Spark(client, url)
