"""HTTP of items: requests become commands, states become answers."""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict

from orders_svc.item import catalogue
from orders_svc.item.commands import ListItem
from orders_svc.item.item import ITEM, Item
from orders_svc.service import PAGE_MAX, Service
from shared.errors import NotFound
from shared.forms import Label, Money, PastInstant, Place
from shared.handler import Outcome, load
from shared.http import AnyCall, Problem, answer_of, response
from shared.identifiers import new_id
from shared.messages import Answer


class ListItemRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Label
    type: Label
    origin: Place
    price: Money
    effective_at: PastInstant | None = None


class ItemResponse(BaseModel):
    item_id: UUID
    name: str
    type: str
    origin: str
    price: Decimal


class ItemPage(BaseModel):
    items: Sequence[ItemResponse]
    next: UUID | None


router = APIRouter(responses={422: {"model": Problem}})


@router.post("/v1/items", status_code=201, response_model=ItemResponse)
async def list_item(body: ListItemRequest, call: AnyCall, service: Service) -> Response:
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

    def listed(outcome: Outcome[Item | None]) -> Answer:
        body = item_response(outcome.state)
        location = f"/v1/items/{item_id}"
        return answer_of(body, version=outcome.version, status=201, location=location)

    return await call.handle(service.items, ITEM, item_id, command, listed)


@router.get("/v1/items/{item_id}", response_model=ItemResponse, responses={404: {"model": Problem}})
async def get_item(item_id: UUID, service: Service) -> Response:
    """An item as it is now."""
    outcome = await load(service.items, ITEM, item_id)
    if outcome.state is None:
        raise NotFound("unknown-item", "there is no such item")
    return response(answer_of(item_response(outcome.state), version=outcome.version))


@router.get("/v1/items")
async def list_items(
    service: Service,
    after: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = 50,
) -> ItemPage:
    """The catalogue; a page ends with the cursor for the next one."""
    entries = await catalogue.list_items(service.pool, after=after, limit=limit)
    items = [
        ItemResponse(
            item_id=entry.item_id,
            name=entry.name,
            type=entry.type,
            origin=entry.origin,
            price=entry.price,
        )
        for entry in entries
    ]
    return ItemPage(items=items, next=items[-1].item_id if len(items) == limit else None)


def item_response(item: Item | None) -> ItemResponse:
    assert item is not None
    return ItemResponse(
        item_id=item.item_id, name=item.name, type=item.type, origin=item.origin, price=item.price
    )
