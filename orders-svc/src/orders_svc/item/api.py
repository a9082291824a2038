"""HTTP routes of items: requests become commands, states become responses."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from orders_svc.dependencies import PAGE_MAX, ResourcesDep
from orders_svc.item import catalogue
from orders_svc.item.commands import CorrectItemOrigin, DelistItem, ListItem, RepriceItem
from orders_svc.item.item import (
    ITEM,
    ITEM_DELISTED,
    SAME_ORIGIN,
    SAME_PRICE,
    TOO_MANY_ORIGINS,
    TOO_MANY_PRICES,
    UNKNOWN_ITEM,
    Item,
    require_known,
    require_listed,
)
from orders_svc.item.schemas import (
    CatalogueEntryResponse,
    CorrectItemOriginRequest,
    ItemPage,
    ItemResponse,
    ListItemRequest,
    RepriceItemRequest,
    to_item_response,
)
from shared.eventsourcing import event_log
from shared.eventsourcing.event_log import EventPage
from shared.eventsourcing.handler import Outcome, load
from shared.messaging.messages import StoredResponse
from shared.runtime.identifiers import new_id
from shared.web.auth import Caller, require_scope
from shared.web.field_types import DIGITS, Id, Version, get_current_instant
from shared.web.http import no_content, to_http_response, to_response
from shared.web.openapi import ETAG, LOCATION, REPLAYED, refusals, success
from shared.web.write_requests import WriteRequestDep

ItemsReader = Annotated[Caller, require_scope("items:read")]
ItemsWriter = Annotated[Caller, require_scope("items:write")]

router = APIRouter(tags=["items"])


@router.post(
    "/v1/items",
    status_code=201,
    response_model=ItemResponse,
    responses=success(201, ETAG, LOCATION, REPLAYED) | refusals(writes=True),
)
async def list_item(
    caller: ItemsWriter,
    body: ListItemRequest,
    write_request: WriteRequestDep,
    resources: ResourcesDep,
) -> Response:
    """List an item. Its origin is effective from `effective_at` on, by default from now on."""
    item_id = new_id()
    command = ListItem(
        item_id=item_id,
        name=body.name,
        type=body.type,
        origin=body.origin,
        price=body.price,
        effective_at=body.effective_at or get_current_instant(),
    )

    def make_response(outcome: Outcome[Item]) -> StoredResponse:
        body = to_item_response(require_listed(outcome.state))
        location = f"/v1/items/{item_id}"
        return to_response(body, version=outcome.version, status=201, location=location)

    return await write_request.handle(
        resources.items, ITEM, item_id, command, make_response, is_new=True
    )


@router.get(
    "/v1/items/{item_id}",
    response_model=ItemResponse,
    responses=success(200, ETAG) | refusals(missing=[UNKNOWN_ITEM]),
)
async def get_item(caller: ItemsReader, item_id: Id, resources: ResourcesDep) -> Response:
    """An item as it is now."""
    outcome = await load(resources.items, ITEM, item_id)
    body = to_item_response(require_known(outcome.state))
    return to_http_response(to_response(body, version=outcome.version))


@router.get("/v1/items", responses=refusals())
async def list_items(
    caller: ItemsReader,
    resources: ResourcesDep,
    after: Id | None = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX), DIGITS] = 50,
) -> ItemPage:
    """The catalogue: all listed items; eventually consistent."""
    entries = await catalogue.list_items(resources.pool, after=after, limit=limit)
    items = [
        CatalogueEntryResponse(
            item_id=entry.item_id,
            name=entry.name,
            type=entry.type,
            origin=entry.origin,
            price=entry.price,
        )
        for entry in entries
    ]
    return ItemPage(items=items, next=items[-1].item_id if len(items) == limit else None)


@router.post(
    "/v1/items/{item_id}/price-changes",
    response_model=ItemResponse,
    responses=success(200, ETAG, REPLAYED)
    | refusals(
        missing=[UNKNOWN_ITEM],
        conflicts=[ITEM_DELISTED, SAME_PRICE, TOO_MANY_PRICES],
        writes=True,
    ),
)
async def reprice_item(
    caller: ItemsWriter,
    item_id: Id,
    body: RepriceItemRequest,
    write_request: WriteRequestDep,
    resources: ResourcesDep,
) -> Response:
    """Change the price of an item. Orders keep the price at which they were placed."""
    command = RepriceItem(price=body.price, effective_at=body.effective_at or get_current_instant())
    return await write_request.handle(
        resources.items, ITEM, item_id, command, make_changed_response
    )


@router.post(
    "/v1/items/{item_id}/origin-corrections",
    response_model=ItemResponse,
    responses=success(200, ETAG, REPLAYED)
    | refusals(
        missing=[UNKNOWN_ITEM],
        conflicts=[ITEM_DELISTED, SAME_ORIGIN, TOO_MANY_ORIGINS],
        writes=True,
    ),
)
async def correct_item_origin(
    caller: ItemsWriter,
    item_id: Id,
    body: CorrectItemOriginRequest,
    write_request: WriteRequestDep,
    resources: ResourcesDep,
) -> Response:
    """Correct the origin of an item from `effective_at` on, which can be in the past."""
    command = CorrectItemOrigin(
        origin=body.origin, effective_at=body.effective_at or get_current_instant()
    )
    return await write_request.handle(
        resources.items, ITEM, item_id, command, make_changed_response
    )


@router.delete(
    "/v1/items/{item_id}",
    status_code=204,
    responses=success(204, ETAG, REPLAYED)
    | refusals(missing=[UNKNOWN_ITEM], conflicts=[ITEM_DELISTED], writes=True),
)
async def delist_item(
    caller: ItemsWriter, item_id: Id, write_request: WriteRequestDep, resources: ResourcesDep
) -> Response:
    """Delist an item. Orders that were placed before are not changed, and can be confirmed."""

    def make_response(outcome: Outcome[Item]) -> StoredResponse:
        return no_content(outcome.version)

    command = DelistItem(effective_at=get_current_instant())
    return await write_request.handle(resources.items, ITEM, item_id, command, make_response)


@router.get("/v1/items/{item_id}/events", responses=refusals(missing=[UNKNOWN_ITEM]))
async def list_item_events(
    caller: ItemsReader,
    item_id: Id,
    resources: ResourcesDep,
    after: Version = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX), DIGITS] = 50,
) -> EventPage:
    """The events of an item, oldest first."""
    # First, because the log has the streams of orders as well, which the caller may not read.
    require_known((await load(resources.items, ITEM, item_id)).state)
    return await event_log.read_page(
        resources.pool, item_id, after=after, limit=limit, unknown=UNKNOWN_ITEM
    )


def make_changed_response(outcome: Outcome[Item]) -> StoredResponse:
    return to_response(to_item_response(require_listed(outcome.state)), version=outcome.version)
