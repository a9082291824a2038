"""The answer of Spark, asked only to be compared: nothing is decided on it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import httpx
from pydantic import TypeAdapter, ValidationError

from analytics_faust.buyers import Totals
from analytics_faust.joins import cents_of

ANSWER_SECONDS_MAX = 2.0


@dataclass(eq=False)
class UpstreamUnavailable(Exception):
    """Spark's answer cannot be had."""

    reason: str

    def __str__(self) -> str:
        return f"analytics cannot be asked: {self.reason}"


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
            cents=cents_of(self.amount),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    hours: Sequence[Hour]


PAGE: TypeAdapter[Page] = TypeAdapter(Page)


class Spark:
    """Asks with the token of who asked us: nobody sees more than they may see there."""

    def __init__(self, client: httpx.AsyncClient, url: str | None) -> None:
        self._client = client
        self._url = url

    async def hours(
        self, query: Mapping[str, str], authorization: str
    ) -> Sequence[tuple[datetime, Totals]]:
        """What `GET /v1/hours` answers there. Raises UpstreamUnavailable."""
        if self._url is None:
            raise UpstreamUnavailable("its address is not set")
        try:
            answer = await self._client.get(
                f"{self._url}/v1/hours", params=query, headers={"Authorization": authorization}
            )
        except httpx.HTTPError as error:
            raise UpstreamUnavailable(type(error).__name__) from error
        if not answer.is_success:
            raise UpstreamUnavailable(f"it answered {answer.status_code}")
        try:
            page = PAGE.validate_json(answer.content)
        except ValidationError as error:
            raise UpstreamUnavailable(
                f"{error.error_count()} fields are not as expected"
            ) from error
        return [(each.hour, each.totals) for each in page.hours]


@asynccontextmanager
async def open_spark(url: str | None) -> AsyncIterator[Spark]:
    async with httpx.AsyncClient(timeout=ANSWER_SECONDS_MAX) as client:
        yield Spark(client, url)
