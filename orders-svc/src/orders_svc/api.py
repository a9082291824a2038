"""The HTTP application: the routes of items and of orders."""

from fastapi import FastAPI

import orders_svc.item.api
import orders_svc.order.api
from orders_svc.bootstrap import Resources
from shared import http
from shared.auth import Door


def create_app(resources: Resources, door: Door) -> FastAPI:
    """The HTTP application over opened resources."""
    routers = [orders_svc.item.api.router, orders_svc.order.api.router]
    return http.create_app(
        "orders-svc", routers, pool=resources.pool, resources=resources, door=door
    )
