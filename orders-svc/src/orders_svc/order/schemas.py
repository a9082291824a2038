"""The JSON of requests and responses about orders, with examples."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from orders_svc.order.events import CancelReason
from orders_svc.order.order import PlacedOrder, Status
from shared.messaging.bounds import QUANTITY_MAX
from shared.web.field_types import Amount, Id, Integer, PastInstant

LINES_MAX = 100
AN_ITEM_ID = "01936f2a-7b00-7000-8000-000000000001"
A_USER_ID = "01936f2a-7b00-7000-8000-000000000002"
LINES = [{"item_id": AN_ITEM_ID, "quantity": 2, "unit_price": "5388.88"}]
AN_ORDER: dict[str, Any] = {
    "order_id": "01936f2a-7b00-7000-8000-000000000003",
    "user_id": A_USER_ID,
    "status": "cancelled",
    "reason": "changed-my-mind",
    "amount": "10777.76",
    "ordered_at": "2016-11-11T00:00:01Z",
}


class OrderLineRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    item_id: Id
    quantity: Annotated[Integer, Field(ge=1, le=QUANTITY_MAX)]


class PlaceOrderRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"user_id": A_USER_ID, "lines": [{"item_id": AN_ITEM_ID, "quantity": 2}]}]
        },
    )

    user_id: Id
    lines: Annotated[list[OrderLineRequest], Field(min_length=1, max_length=LINES_MAX)]
    ordered_at: PastInstant | None = None


class CancelOrderRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"reason": "changed-my-mind"}]}
    )

    reason: CancelReason


class OrderLineResponse(BaseModel):
    item_id: UUID
    quantity: int
    unit_price: Amount


class OrderSummaryResponse(BaseModel):
    """`reason` is why the order was rejected or cancelled, otherwise null."""

    model_config = ConfigDict(json_schema_extra={"examples": [AN_ORDER]})

    order_id: UUID
    user_id: UUID
    status: Status
    reason: str | None
    amount: Amount
    ordered_at: datetime


class OrderResponse(OrderSummaryResponse):
    model_config = ConfigDict(json_schema_extra={"examples": [AN_ORDER | {"lines": LINES}]})

    lines: Sequence[OrderLineResponse]


class OrderPage(BaseModel):
    """`next` is the `after` of the next page, null on the last one."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"orders": [AN_ORDER], "next": AN_ORDER["order_id"]}]}
    )

    orders: Sequence[OrderSummaryResponse]
    next: UUID | None


def to_order_response(order: PlacedOrder) -> OrderResponse:
    return OrderResponse(
        order_id=order.order_id,
        user_id=order.user_id,
        status=order.status,
        reason=order.reason,
        lines=[
            OrderLineResponse(
                item_id=line.item_id, quantity=line.quantity, unit_price=line.unit_price
            )
            for line in order.lines
        ],
        amount=order.amount,
        ordered_at=order.ordered_at,
    )
