"""HTTP of items: requests become commands, states become answers."""

from datetime import UTC, datetime
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
    item_response,
)
from shared.eventsourcing.handler import Outcome, load
from shared.messaging.messages import StoredResponse
from shared.runtime.identifiers import new_id
from shared.web.auth import Caller, require_scope
from shared.web.field_types import Id
from shared.web.http import no_content, response, to_response
from shared.web.openapi import ETAG, LOCATION, REPLAYED, answered, refusals
from shared.web.write_requests import WriteRequestDep

Reader = Annotated[Caller, require_scope("items:read")]
Writer = Annotated[Caller, require_scope("items:write")]

router = APIRouter(tags=["items"])


@router.post(
    "/v1/items",
    status_code=201,
    response_model=ItemResponse,
    responses=answered(201, ETAG, LOCATION, REPLAYED) | refusals(writes=True),
)
async def list_item(
    caller: Writer, body: ListItemRequest, call: WriteRequestDep, service: ResourcesDep
) -> Response:
    """Put an item on offer. Its origin holds from `effective_at`, by default from now on."""
    item_id = new_id()
    command = ListItem(
        item_id=item_id,
        name=body.name,
        type=body.type,
        origin=body.origin,
        price=body.price,
        effective_at=body.effective_at or datetime.now(UTC),
    )

    def listed(outcome: Outcome[Item]) -> StoredResponse:
        body = item_response(require_listed(outcome.state))
        location = f"/v1/items/{item_id}"
        return to_response(body, version=outcome.version, status=201, location=location)

    return await call.handle(service.items, ITEM, item_id, command, listed, is_new=True)


@router.get(
    "/v1/items/{item_id}",
    response_model=ItemResponse,
    responses=answered(200, ETAG) | refusals(missing=[UNKNOWN_ITEM]),
)
async def get_item(caller: Reader, item_id: Id, service: ResourcesDep) -> Response:
    """An item as it is now."""
    outcome = await load(service.items, ITEM, item_id)
    body = item_response(require_known(outcome.state))
    return response(to_response(body, version=outcome.version))


@router.get("/v1/items", responses=refusals())
async def list_items(
    caller: Reader,
    service: ResourcesDep,
    after: Id | None = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = 50,
) -> ItemPage:
    """The catalogue: all items on offer, as of a moment ago."""
    entries = await catalogue.list_items(service.pool, after=after, limit=limit)
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
    responses=answered(200, ETAG, REPLAYED)
    | refusals(missing=[UNKNOWN_ITEM], conflicts=[ITEM_DELISTED, SAME_PRICE], writes=True),
)
async def reprice_item(
    caller: Writer,
    item_id: Id,
    body: RepriceItemRequest,
    call: WriteRequestDep,
    service: ResourcesDep,
) -> Response:
    """Change what an item costs. Orders keep the price at which they were placed."""
    command = RepriceItem(price=body.price, effective_at=body.effective_at or datetime.now(UTC))
    return await call.handle(service.items, ITEM, item_id, command, changed)


@router.post(
    "/v1/items/{item_id}/origin-corrections",
    response_model=ItemResponse,
    responses=answered(200, ETAG, REPLAYED)
    | refusals(missing=[UNKNOWN_ITEM], conflicts=[ITEM_DELISTED, SAME_ORIGIN], writes=True),
)
async def correct_item_origin(
    caller: Writer,
    item_id: Id,
    body: CorrectItemOriginRequest,
    call: WriteRequestDep,
    service: ResourcesDep,
) -> Response:
    """Correct where an item comes from, from `effective_at` on, which may lie in the past."""
    command = CorrectItemOrigin(
        origin=body.origin, effective_at=body.effective_at or datetime.now(UTC)
    )
    return await call.handle(service.items, ITEM, item_id, command, changed)


@router.delete(
    "/v1/items/{item_id}",
    status_code=204,
    responses=answered(204, ETAG, REPLAYED)
    | refusals(missing=[UNKNOWN_ITEM], conflicts=[ITEM_DELISTED], writes=True),
)
async def delist_item(
    caller: Writer, item_id: Id, call: WriteRequestDep, service: ResourcesDep
) -> Response:
    """Take an item off the offer. Orders that were placed before are confirmed as ever."""

    def delisted(outcome: Outcome[Item]) -> StoredResponse:
        return no_content(outcome.version)

    command = DelistItem(effective_at=datetime.now(UTC))
    return await call.handle(service.items, ITEM, item_id, command, delisted)


def changed(outcome: Outcome[Item]) -> StoredResponse:
    return to_response(item_response(require_listed(outcome.state)), version=outcome.version)
