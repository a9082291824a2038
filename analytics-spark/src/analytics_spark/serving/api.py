"""The HTTP API over the results: hours, their splits, and how far the job is."""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, ConfigDict, Field
from starlette.routing import BaseRoute

from analytics_spark.job.checkpoint import Offsets
from analytics_spark.serving import change_feed, hour_queries
from analytics_spark.serving.bootstrap import Resources
from analytics_spark.serving.dependencies import TOO_MANY_LISTENERS, FeedSlot, ResourcesDep
from analytics_spark.serving.hour_queries import Epoch, HourTotals, Split, Totals, get_lag, is_final
from analytics_spark.serving.page import PATHS as PAGE_PATHS
from shared.eventsourcing.errors import NotFound
from shared.web import http
from shared.web.auth import NOT_YOURS, Caller, RequestAuthenticator, require_scope
from shared.web.field_types import DIGITS, Amount, Hour, Id, Instant, Label
from shared.web.openapi import ANY_CODES, NOT_FOUND, Responses, describe_status, refusals

PAGE_MAX = 1_000
PARTITION_MAX = 2**31 - 1
OFFSET_MAX = 2**63 - 1
NOT_READ = "not-read"


TOTALS: dict[str, Any] = {
    "local_buyers": 4,
    "purchases": 4,
    "quantity": 12,
    "amount": "44506.56",
}
A_CELL = {"origin": "BJ", **TOTALS}
ALL = {"purchases": 16, "quantity": 55, "amount": "203588.40"}
AN_HOUR = {"hour": "2016-11-11T00:00:00Z", **TOTALS, "all": ALL, "final": True}


class TotalsResponse(BaseModel):
    """Totals of local purchases: the item comes from the place where its buyer lives."""

    local_buyers: int
    purchases: int
    quantity: int
    amount: Amount


class AllResponse(BaseModel):
    """Totals of all purchases, local or not."""

    purchases: int
    quantity: int
    amount: Amount


class HourResponse(TotalsResponse):
    """A final hour no longer changes: the watermark has passed its end."""

    model_config = ConfigDict(json_schema_extra={"examples": [AN_HOUR]})

    hour: datetime
    all: AllResponse
    final: bool


class CellResponse(TotalsResponse):
    """The value of the split is a field next to the totals, named as the split."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [A_CELL]})


class HourPage(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"hours": [AN_HOUR], "next": AN_HOUR["hour"]}]}
    )

    hours: Sequence[HourResponse]
    next: datetime | None


class ChangedHours(BaseModel):
    """The data of an event: the current state of hours. A `reset` has none: any hour may have
    changed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"hours": [AN_HOUR]}]})

    hours: Sequence[HourResponse]


class SplitHourResponse(HourResponse):
    """`by` and `cells` are null without a split."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [AN_HOUR | {"by": "origin", "cells": [A_CELL]}]}
    )

    by: Split | None
    cells: Sequence[CellResponse] | None


class BatchResponse(BaseModel):
    """`milliseconds` is the duration of the batch, null when it is not known."""

    id: int
    committed_at: datetime
    milliseconds: int | None
    trace_id: str
    orders: int


A_RECONCILIATION: dict[str, Any] = {
    "ended_at": "2016-11-11T04:00:00Z",
    "since": "2016-11-04T02:00:00Z",
    "until": "2016-11-11T02:00:00Z",
    "purchases": 4,
    "undecided": 0,
    "differences": 0,
    "hours": [],
}


class ReconciliationResponse(BaseModel):
    """The final hours in [since, until), compared with the event stores: how many cells differ, and
    in which hours. For undecided purchases it is unknown whether they came in time."""

    model_config = ConfigDict(
        from_attributes=True, json_schema_extra={"examples": [A_RECONCILIATION]}
    )

    ended_at: datetime
    since: datetime | None
    until: datetime | None
    purchases: int
    undecided: int
    differences: int
    hours: Sequence[datetime]


A_STATUS: dict[str, Any] = {
    "watermark": "2016-11-11T00:30:00Z",
    "last_batch": {
        "id": 3,
        "committed_at": "2016-11-11T00:31:00Z",
        "milliseconds": 400,
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "orders": 16,
    },
    "lag": {"orders.v1": {"0": 2, "1": 0}},
    "orders_counted": 16,
    "late_orders": 0,
    "duplicate_orders": 0,
    "bad_records": 0,
    "reconciliation": A_RECONCILIATION,
}


class StatusResponse(BaseModel):
    """`lag` is null while Kafka is unavailable."""

    model_config = ConfigDict(json_schema_extra={"examples": [A_STATUS]})

    watermark: datetime | None
    last_batch: BatchResponse | None
    lag: Offsets | None
    orders_counted: int
    late_orders: int = Field(
        description="Orders at or before the watermark. A repeat that arrives after its order's"
        " state was evicted cannot be distinguished from a late order, and is included."
    )
    duplicate_orders: int
    bad_records: int
    reconciliation: ReconciliationResponse | None


class ReadingResponse(BaseModel):
    """An order at or before the batch's `watermark` was too late, and was not counted."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "batch_id": 3,
                    "committed_at": "2016-11-11T00:31:00Z",
                    "trace_id": "0af7651916cd43dd8448eb211c80319c",
                    "watermark": "2016-11-11T00:30:00Z",
                }
            ]
        }
    )

    batch_id: int
    committed_at: datetime
    trace_id: str
    watermark: datetime | None


class UserCellResponse(BaseModel):
    item_id: str
    address: str
    purchases: int
    quantity: int
    amount: Amount


class UserHourResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "hour": "2016-11-11T00:00:00Z",
                    "cells": [
                        {
                            "item_id": "01936f2a-7b00-7000-8000-000000000001",
                            "address": "BJ",
                            "purchases": 1,
                            "quantity": 3,
                            "amount": "16166.64",
                        }
                    ],
                }
            ]
        }
    )

    hour: datetime
    cells: Sequence[UserCellResponse]


HoursReader = Annotated[Caller, require_scope("hours:read")]
OrdersReader = Annotated[Caller, require_scope("orders:read")]
"""A caller that may read orders may read how they were counted."""


AN_EVENT = {
    "event": "hours",
    "id": "5b0a4a0c-1a63-4f5e-9d2c-6a1a1f5d9c11.3",
    "data": json.dumps({"hours": [AN_HOUR]}),
}
EVENT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "event": {"enum": ["hours", "reset"]},
        "id": {"type": "string", "description": "The position; empty before the first batch."},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {
                "type": "object",
                "properties": {
                    "hours": {
                        "type": "array",
                        "items": {"$ref": "#/components/schemas/HourResponse"},
                    }
                },
                "required": ["hours"],
            },
        },
    },
    "required": ["event", "id", "data"],
}
STREAMED: Responses = {
    200: {
        "description": "An endless stream of server-sent events; the example is one of them.",
        "content": {
            "text/event-stream": {
                "schema": EVENT_SCHEMA,
                "examples": {"hours": {"value": AN_EVENT}},
            }
        },
    },
    503: describe_status(503, [*ANY_CODES[503], TOO_MANY_LISTENERS]),
}

router = APIRouter(tags=["hours"], responses=refusals())


@router.get("/v1/hours")
async def list_hours(
    caller: HoursReader,
    service: ResourcesDep,
    from_: Annotated[Instant | None, Query(alias="from")] = None,
    to: Instant | None = None,
    after: Instant | None = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX), DIGITS] = 100,
) -> HourPage:
    """Hours in [from, to) with purchases; a page ends with the cursor of the next one."""
    async with hour_queries.snapshot(service.pool) as connection:
        found = await hour_queries.list_hours(
            connection, since=from_, until=to, after=after, limit=limit
        )
        watermark = await hour_queries.get_watermark(connection)
    page = [to_hour_response(hour, totals, watermark) for hour, totals in found]
    return HourPage(hours=page, next=page[-1].hour if len(page) == limit else None)


@router.get("/v1/hours/{hour}", responses=refusals(missing=[NOT_FOUND]))
async def get_hour(
    caller: HoursReader, hour: Hour, service: ResourcesDep, by: Split | None = None
) -> SplitHourResponse:
    """One hour, optionally with a split; a buyer in several cells is counted in each of them."""
    async with hour_queries.snapshot(service.pool) as connection:
        totals = await hour_queries.get_hour(connection, hour)
        cells = await hour_queries.split_hour(connection, hour, by) if by else []
        watermark = await hour_queries.get_watermark(connection)
    whole = to_hour_response(hour, totals, watermark)
    return SplitHourResponse(
        **whole.model_dump(), by=by, cells=None if by is None else to_cell_responses(by, cells)
    )


@router.get("/v1/stream", response_class=EventSourceResponse, responses=STREAMED)
async def stream_hours(
    caller: HoursReader,
    feed: FeedSlot,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Server-sent events with the hours that a batch changed or made final.

    An event `hours` has the current state of hours, in the schema of `GET /v1/hours`; a client
    replaces its copies with them. An event `reset` means that any hour may have changed: read
    `GET /v1/hours` again. It comes first, and when it is no longer known what was missed. Each
    event has an id; with the last one as `Last-Event-ID`, a new stream continues without a gap.
    Batches that commit within half a second can come as one event. A stream ends after some
    minutes, and a slow client is disconnected: reconnect. Comments show that the stream is alive.
    """
    position = change_feed.parse_position(last_event_id) if last_event_id else None
    async for event in feed.events(position):
        yield ServerSentEvent(
            event="reset" if event.hours is None else "hours",
            id=str(event.position) if event.position else "",
            data=ChangedHours(
                hours=[
                    to_hour_response(hour, totals, event.watermark)
                    for hour, totals in event.hours or ()
                ]
            ),
        )


@router.get("/v1/status")
async def get_status(caller: HoursReader, service: ResourcesDep) -> StatusResponse:
    """The last batch, the watermark, and how many orders were counted or dropped."""
    epoch = await hour_queries.get_latest_epoch(service.pool)
    reconciled = await hour_queries.get_latest_reconciliation(service.pool)
    ends = await service.topic_ends.current()
    return StatusResponse(
        watermark=epoch.watermark if epoch else None,
        last_batch=to_batch_response(epoch) if epoch else None,
        lag=get_lag(ends, epoch),
        orders_counted=epoch.counted if epoch else 0,
        late_orders=epoch.late if epoch else 0,
        duplicate_orders=epoch.duplicates if epoch else 0,
        bad_records=epoch.bad if epoch else 0,
        reconciliation=reconciled and ReconciliationResponse.model_validate(reconciled),
    )


@router.get("/v1/readings", responses=refusals(missing=[NOT_READ]))
async def get_reading(
    caller: OrdersReader,
    service: ResourcesDep,
    topic: Annotated[Label, Query(examples=["orders.v1"])],
    partition: Annotated[int, Query(ge=0, le=PARTITION_MAX), DIGITS],
    offset: Annotated[int, Query(ge=0, le=OFFSET_MAX), DIGITS],
    recorded_at: Instant,
) -> ReadingResponse:
    """The batch that read a record of a topic."""
    reading = await hour_queries.find_reading(
        service.pool, topic, partition, offset, recorded_at=recorded_at
    )
    if reading is None:
        raise NotFound(NOT_READ, "no known batch has read this record")
    return ReadingResponse(
        batch_id=reading.batch_id,
        committed_at=reading.committed_at,
        trace_id=reading.trace_id,
        watermark=reading.watermark,
    )


@router.get(
    "/v1/hours/{hour}/users/{user_id}",
    responses=refusals(forbidden=[NOT_YOURS], missing=[NOT_FOUND]),
)
async def get_user_hour(
    caller: OrdersReader, hour: Hour, user_id: Id, service: ResourcesDep
) -> UserHourResponse:
    """The local purchases of one user in an hour, by item."""
    caller.demand_own(user_id)
    cells = await hour_queries.get_user_cells(service.pool, hour, str(user_id))
    return UserHourResponse(
        hour=hour,
        cells=[
            UserCellResponse(
                item_id=cell.item_id,
                address=cell.address,
                purchases=cell.purchases,
                quantity=cell.quantity,
                amount=Decimal(cell.cents).scaleb(-2),
            )
            for cell in cells
        ],
    )


def to_amounts(totals: Totals) -> dict[str, Any]:
    return {
        "local_buyers": totals.local_buyers,
        "purchases": totals.purchases,
        "quantity": totals.quantity,
        "amount": Decimal(totals.cents).scaleb(-2),
    }


def to_hour_response(
    hour: datetime, totals: HourTotals, watermark: datetime | None
) -> HourResponse:
    return HourResponse(
        hour=hour,
        **to_amounts(totals.local),
        all=AllResponse(
            purchases=totals.all_purchases,
            quantity=totals.all_quantity,
            amount=Decimal(totals.all_cents).scaleb(-2),
        ),
        final=is_final(hour, watermark),
    )


def to_cell_responses(by: Split, cells: Iterable[tuple[str, Totals]]) -> Sequence[CellResponse]:
    return [CellResponse.model_validate({by: value, **to_amounts(cell)}) for value, cell in cells]


def to_batch_response(epoch: Epoch) -> BatchResponse:
    return BatchResponse(
        id=epoch.batch_id,
        committed_at=epoch.committed_at,
        milliseconds=epoch.milliseconds,
        trace_id=epoch.trace_id,
        orders=epoch.orders,
    )


def create_app(
    resources: Resources, authenticator: RequestAuthenticator, page: Sequence[BaseRoute] = ()
) -> FastAPI:
    """The HTTP application over opened resources, with the routes of the page if it is enabled."""
    return http.create_app(
        "analytics-spark",
        [router],
        pool=resources.pool,
        resources=resources,
        authenticator=authenticator,
        open_routes=page,
        open_paths=PAGE_PATHS if page else frozenset(),
    )
