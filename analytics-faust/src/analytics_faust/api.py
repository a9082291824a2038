"""The HTTP API: hours as counted here, and where they differ from Spark's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from analytics_faust import page
from analytics_faust.buyers import Totals
from analytics_faust.differences import Difference, Reason, find_differences
from analytics_faust.service_clients import Spark, UpstreamUnavailable
from analytics_faust.transport import check_membership
from analytics_faust.worker import Program
from shared.eventsourcing.event_store import rfc3339
from shared.web import http
from shared.web.auth import Caller, RequestAuthenticator, require_scope
from shared.web.field_types import DIGITS, Amount, Hour, Instant
from shared.web.openapi import NOT_FOUND, refusals
from shared.web.problems import HttpProblem

PAGE_MAX = 1_000
NOT_HERE = "hours-not-here"
CANNOT_COMPARE = "cannot-compare"

TOTALS: dict[str, Any] = {
    "local_buyers": 4,
    "purchases": 4,
    "quantity": 12,
    "amount": "44506.56",
}
AN_HOUR: dict[str, Any] = {"hour": "2016-11-11T00:00:00Z", **TOTALS, "final": False}
A_DIFFERENCE: dict[str, Any] = {
    "hour": "2016-11-11T00:00:00Z",
    "here": TOTALS,
    "spark": TOTALS | {"local_buyers": 5, "purchases": 5, "quantity": 13, "amount": "49895.44"},
    "reasons": ["move", "corrected-origin", "order-before-user", "not-read-yet"],
}


class TotalsResponse(BaseModel):
    local_buyers: int
    purchases: int
    quantity: int
    amount: Amount


class HourResponse(TotalsResponse):
    """No hour is ever final here: there is no watermark that could pass its end."""

    model_config = ConfigDict(json_schema_extra={"examples": [AN_HOUR]})

    hour: datetime
    final: bool = False


class HourPage(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"hours": [AN_HOUR], "next": AN_HOUR["hour"]}]}
    )

    hours: Sequence[HourResponse]
    next: datetime | None


class DifferenceResponse(BaseModel):
    """`reasons` lists all possible reasons of the difference; the page `/` explains them."""

    hour: datetime
    here: TotalsResponse
    spark: TotalsResponse
    reasons: Sequence[Reason]


class DifferencePage(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"hours": [A_DIFFERENCE], "next": A_DIFFERENCE["hour"]}]}
    )

    hours: Sequence[DifferenceResponse]
    next: datetime | None


class StatusResponse(BaseModel):
    """Records lost since this process started; a record that is delivered twice counts twice."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"orders_without_user": 1, "lines_without_item": 0, "bad_records": 0}]
        }
    )

    orders_without_user: int
    lines_without_item: int = Field(description="Cancelled lines need no item.")
    bad_records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    program: Program
    spark: Spark
    shows_hours: bool
    """Whether the page, which needs no token, shows the counted hours."""


async def get_resources(request: Request) -> Resources:
    resources: Resources = request.app.state.resources
    return resources


ResourcesDep = Annotated[Resources, Depends(get_resources)]
HoursReader = Annotated[Caller, require_scope("hours:read")]

router = APIRouter(tags=["hours"], responses=refusals(unavailable=[NOT_HERE]))


@router.get("/v1/hours")
async def list_hours(
    caller: HoursReader,
    service: ResourcesDep,
    from_: Annotated[Instant | None, Query(alias="from")] = None,
    to: Instant | None = None,
    after: Instant | None = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX), DIGITS] = 100,
) -> HourPage:
    """Hours in [from, to) with local purchases; a page ends with the cursor for the next one."""
    require_hours(service.program)
    found = service.program.hours.list(since=from_, until=to, after=after, limit=limit)
    shown = [hour_response(hour, totals) for hour, totals in found]
    return HourPage(hours=shown, next=shown[-1].hour if len(shown) == limit else None)


@router.get("/v1/hours/{hour}", responses=refusals(missing=[NOT_FOUND], unavailable=[NOT_HERE]))
async def get_hour(caller: HoursReader, hour: Hour, service: ResourcesDep) -> HourResponse:
    """One hour."""
    require_hours(service.program)
    return hour_response(hour, service.program.hours.get(hour))


@router.get("/v1/differences", responses=refusals(unavailable=[NOT_HERE, CANNOT_COMPARE]))
async def list_differences(
    caller: HoursReader,
    service: ResourcesDep,
    authorization: Annotated[str, Header(include_in_schema=False)],
    from_: Annotated[Instant | None, Query(alias="from")] = None,
    to: Instant | None = None,
    after: Instant | None = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX), DIGITS] = 100,
) -> DifferencePage:
    """Hours in [from, to) whose totals differ from Spark's; at most `limit` hours are compared."""
    require_hours(service.program)
    bounds = {"from": from_, "to": to, "after": after}
    query = {name: rfc3339(instant) for name, instant in bounds.items() if instant is not None}
    try:
        spark = await service.spark.hours({**query, "limit": str(limit)}, authorization)
    except UpstreamUnavailable as error:
        raise HttpProblem(503, CANNOT_COMPARE, str(error)) from error
    require_hours(service.program)
    here = service.program.hours.list(since=from_, until=to, after=after, limit=limit)
    end = get_common_end(here, spark, limit)
    found = find_differences(take_until(end, here), take_until(end, spark))
    return DifferencePage(hours=[difference_response(each) for each in found], next=end)


@router.get("/v1/status")
async def get_status(caller: HoursReader, service: ResourcesDep) -> StatusResponse:
    """How many records were lost, and why."""
    lost = service.program.lost
    return StatusResponse(
        orders_without_user=lost["orders_without_user"],
        lines_without_item=lost["lines_without_item"],
        bad_records=lost["bad_records"],
    )


def require_hours(program: Program) -> None:
    """Raises HttpProblem 503 while another worker counts the hours, or this one is not ready."""
    if not program.has_hours:
        detail = "this worker is a standby or not ready yet; another one counts the hours"
        raise HttpProblem(503, NOT_HERE, detail)


Listed = Sequence[tuple[datetime, Totals]]


def get_common_end(here: Listed, spark: Listed, limit: int) -> datetime | None:
    """The last hour that both lists reach; None when both are complete."""
    return min((each[-1][0] for each in (here, spark) if len(each) == limit), default=None)


def take_until(end: datetime | None, listed: Listed) -> Mapping[datetime, Totals]:
    return {hour: totals for hour, totals in listed if end is None or hour <= end}


def amounts(totals: Totals) -> dict[str, Any]:
    return {
        "local_buyers": totals.local_buyers,
        "purchases": totals.purchases,
        "quantity": totals.quantity,
        "amount": Decimal(totals.cents).scaleb(-2),
    }


def hour_response(hour: datetime, totals: Totals) -> HourResponse:
    return HourResponse(hour=hour, **amounts(totals))


def difference_response(difference: Difference) -> DifferenceResponse:
    return DifferenceResponse(
        hour=difference.hour,
        here=TotalsResponse(**amounts(difference.here)),
        spark=TotalsResponse(**amounts(difference.spark)),
        reasons=difference.reasons,
    )


def create_app(resources: Resources, authenticator: RequestAuthenticator) -> FastAPI:
    """The HTTP application of a running program."""
    program = resources.program
    hours = program.hours if resources.shows_hours else None
    return http.create_app(
        "analytics-faust",
        [router],
        resources=resources,
        authenticator=authenticator,
        checks={"kafka": lambda: check_membership(program.app)},
        open_routes=[page.route(hours)],
        open_paths={page.PATH},
    )
