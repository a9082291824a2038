"""The JSON of requests and responses about items, with examples."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from orders_svc.item.item import Delisted, Listed
from shared.web.field_types import Amount, Label, Money, PastInstant, PlaceName

IPHONE: dict[str, Any] = {
    "name": "iphone",
    "type": "phone",
    "origin": "BJ",
    "price": "5388.88",
    "effective_at": "2015-12-11T00:00:00Z",
}
IPHONE_NOW: dict[str, Any] = {
    "item_id": "01936f2a-7b00-7000-8000-000000000001",
    "name": "iphone",
    "type": "phone",
    "origin": "BJ",
    "price": "5388.88",
}


class ListItemRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [IPHONE]})

    name: Label
    type: Label
    origin: PlaceName
    price: Money
    effective_at: PastInstant | None = None


class RepriceItemRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"price": "4888.88"}]}
    )

    price: Money
    effective_at: PastInstant | None = None


class CorrectItemOriginRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"origin": "SH", "effective_at": "2016-11-11T00:00:00Z"}]},
    )

    origin: PlaceName
    effective_at: PastInstant | None = None


class CatalogueEntryResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [IPHONE_NOW]})

    item_id: UUID
    name: str
    type: str
    origin: str
    price: Amount


class ItemResponse(CatalogueEntryResponse):
    """A delisted item stays readable: past orders refer to it."""

    model_config = ConfigDict(json_schema_extra={"examples": [IPHONE_NOW | {"delisted": False}]})

    delisted: bool


class ItemPage(BaseModel):
    """`next` is the `after` of the next page, null on the last one."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"items": [IPHONE_NOW], "next": IPHONE_NOW["item_id"]}]}
    )

    items: Sequence[CatalogueEntryResponse]
    next: UUID | None


def to_item_response(known: Listed | Delisted) -> ItemResponse:
    item = known.last if isinstance(known, Delisted) else known
    return ItemResponse(
        item_id=item.item_id,
        name=item.name,
        type=item.type,
        origin=item.origin,
        price=item.price,
        delisted=isinstance(known, Delisted),
    )
