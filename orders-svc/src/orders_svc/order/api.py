"""HTTP routes of orders: requests become commands, states become responses."""

import asyncio
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from opentelemetry import trace

from orders_svc.dependencies import PAGE_MAX, ResourcesDep
from orders_svc.item.item import ITEM_DELISTED, UNKNOWN_ITEM
from orders_svc.order import journey, placing, summaries
from orders_svc.order.admission import OVERLOADED
from orders_svc.order.commands import CancelOrder
from orders_svc.order.events import CANCELLED, to_reason
from orders_svc.order.journey import JourneyResponse
from orders_svc.order.order import (
    ALREADY_CANCELLED,
    ORDER,
    REJECTED,
    UNKNOWN_ORDER,
    Order,
    PlacedOrder,
    Status,
    require_placed,
)
from orders_svc.order.placing import AMOUNT_TOO_LARGE, OrderDraft
from orders_svc.order.schemas import (
    CancelOrderRequest,
    OrderPage,
    OrderResponse,
    OrderSummaryResponse,
    PlaceOrderRequest,
    to_order_response,
)
from orders_svc.service_clients import ServiceClients
from orders_svc.tracing import ORDER_ID
from shared.eventsourcing import event_log
from shared.eventsourcing.errors import NotFound
from shared.eventsourcing.event_log import EventPage
from shared.eventsourcing.handler import Outcome, load
from shared.messaging.messages import StoredResponse
from shared.runtime.identifiers import new_id
from shared.web.auth import NOT_YOURS, Caller, require_scope
from shared.web.field_types import DIGITS, NUMBER, Id, Version, get_current_instant
from shared.web.http import to_http_response, to_response
from shared.web.openapi import ETAG, LOCATION, REPLAYED, refusals, success
from shared.web.write_requests import WriteRequestDep

WAIT_SECONDS_MAX = 30.0

OrdersReader = Annotated[Caller, require_scope("orders:read")]
OrdersWriter = Annotated[Caller, require_scope("orders:write")]


async def get_service_clients(request: Request) -> ServiceClients:
    service_clients: ServiceClients = request.app.state.service_clients
    return service_clients


ServiceClientsDep = Annotated[ServiceClients, Depends(get_service_clients)]

router = APIRouter(tags=["orders"])


@router.post(
    "/v1/orders",
    status_code=201,
    response_model=OrderResponse,
    responses=success(201, ETAG, LOCATION, REPLAYED)
    | refusals(
        forbidden=[NOT_YOURS],
        missing=[UNKNOWN_ITEM],
        conflicts=[ITEM_DELISTED],
        invalid=[AMOUNT_TOO_LARGE],
        unavailable=[OVERLOADED],
        writes=True,
    ),
)
async def place_order(
    caller: OrdersWriter,
    body: PlaceOrderRequest,
    write_request: WriteRequestDep,
    resources: ResourcesDep,
) -> Response:
    """Place an order at the current prices. It is pending until its user's credit is decided on.

    While new orders would wait too long for that, those of users with the most waiting orders are
    refused as `overloaded`: nothing was recorded, and it can be sent again after `Retry-After`
    seconds. A repeated request still gets its stored response.
    """
    caller.demand_own(body.user_id)
    # After the look-up of a stored response, which is a dependency of the route.
    resources.admission.demand(body.user_id)
    draft = OrderDraft(
        order_id=new_id(),
        user_id=body.user_id,
        quantities=tuple((line.item_id, line.quantity) for line in body.lines),
        ordered_at=body.ordered_at or get_current_instant(),
    )
    trace.get_current_span().set_attribute(ORDER_ID, str(draft.order_id))

    def make_response(outcome: Outcome[Order]) -> StoredResponse:
        location = f"/v1/orders/{draft.order_id}"
        body = to_order_response(require_placed(outcome.state))
        return to_response(body, version=outcome.version, status=201, location=location)

    return await placing.place(
        draft, resources.orders, resources.item_cache, write_request, make_response
    )


@router.get(
    "/v1/orders/{order_id}",
    response_model=OrderResponse,
    responses=success(200, ETAG) | refusals(missing=[UNKNOWN_ORDER]),
)
async def get_order(
    caller: OrdersReader,
    order_id: Id,
    resources: ResourcesDep,
    wait: Annotated[float, Query(ge=0, le=WAIT_SECONDS_MAX), NUMBER] = 0,
) -> Response:
    """The current state of an order; with `wait`, as soon as it is no longer pending.

    After `wait` seconds the order is returned even if it is pending, as it is when the process
    stops.
    """
    deadline = asyncio.get_running_loop().time() + wait
    outcome = await load_own_order(resources, caller, order_id)
    while outcome.state.status == "pending":
        seconds_left = deadline - asyncio.get_running_loop().time()
        newer = await resources.watch.wait_for_newer(order_id, outcome.version, seconds_left)
        if not newer:
            break
        state = ORDER.state_after([each.event for each in newer], outcome.state)
        outcome = Outcome(state=require_placed(state), version=newer[-1].version)
    return to_http_response(to_response(to_order_response(outcome.state), version=outcome.version))


async def load_own_order(
    resources: ResourcesDep, caller: Caller, order_id: UUID
) -> Outcome[PlacedOrder]:
    """An order that the caller can read. Raises NotFound also for another user's order."""
    outcome = await load(resources.orders, ORDER, order_id)
    order = require_placed(outcome.state)
    if not caller.owns(order.user_id):
        raise NotFound(UNKNOWN_ORDER, "there is no such order")
    return Outcome(state=order, version=outcome.version)


@router.get("/v1/orders", responses=refusals(forbidden=[NOT_YOURS]))
async def list_orders(
    caller: OrdersReader,
    resources: ResourcesDep,
    user_id: Id | None = None,
    status: Status | None = None,
    after: Id | None = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX), DIGITS] = 50,
) -> OrderPage:
    """Orders in the sequence of their placement; eventually consistent.

    A caller that is limited to their own data gets only their own orders.
    """
    if caller.is_limited:
        user_id = user_id or caller.user_id
        caller.demand_own(user_id)
    found = await summaries.list_orders(
        resources.pool, user_id=user_id, status=status, after=after, limit=limit
    )
    orders = [
        OrderSummaryResponse(
            order_id=each.order_id,
            user_id=each.user_id,
            status=each.status,
            reason=each.reason,
            amount=each.amount,
            ordered_at=each.ordered_at,
        )
        for each in found
    ]
    return OrderPage(orders=orders, next=orders[-1].order_id if len(orders) == limit else None)


@router.post(
    "/v1/orders/{order_id}/cancel",
    response_model=OrderResponse,
    responses=success(200, ETAG, REPLAYED)
    | refusals(missing=[UNKNOWN_ORDER], conflicts=[ALREADY_CANCELLED, REJECTED], writes=True),
)
async def cancel_order(
    caller: OrdersWriter,
    order_id: Id,
    body: CancelOrderRequest,
    write_request: WriteRequestDep,
    resources: ResourcesDep,
) -> Response:
    """Cancel an order: it is no longer counted, and its reserved credit is released."""
    trace.get_current_span().set_attribute(ORDER_ID, str(order_id))
    if caller.is_limited:
        await load_own_order(resources, caller, order_id)
    command = CancelOrder(reason=body.reason)
    return await write_request.handle(
        resources.orders, ORDER, order_id, command, make_changed_response
    )


@router.get("/v1/orders/{order_id}/events", responses=refusals(missing=[UNKNOWN_ORDER]))
async def list_order_events(
    caller: OrdersReader,
    order_id: Id,
    resources: ResourcesDep,
    after: Version = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX), DIGITS] = 50,
) -> EventPage:
    """The events of an order, oldest first."""
    await load_own_order(resources, caller, order_id)
    page = await event_log.read_page(
        resources.pool, order_id, after=after, limit=limit, unknown=UNKNOWN_ORDER
    )
    for event in page.events:
        if event.type == CANCELLED:
            event.data["reason"] = to_reason(event.data["reason"])
    return page


@router.get("/v1/orders/{order_id}/journey", responses=refusals(missing=[UNKNOWN_ORDER]))
async def get_order_journey(
    caller: OrdersReader,
    order_id: Id,
    resources: ResourcesDep,
    service_clients: ServiceClientsDep,
    authorization: Annotated[str, Header(include_in_schema=False)],
) -> JourneyResponse:
    """Every hop of an order: recorded, published, its credit decided, counted; or parked, and why.

    It does not depend on traces. `unknown` lists the services that did not respond.
    """
    outcome = await load_own_order(resources, caller, order_id)
    return await journey.read_journey(resources.pool, service_clients, outcome.state, authorization)


def make_changed_response(outcome: Outcome[Order]) -> StoredResponse:
    return to_response(to_order_response(require_placed(outcome.state)), version=outcome.version)
