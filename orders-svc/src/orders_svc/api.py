"""The HTTP application: the routes of items and of orders."""

from fastapi import FastAPI

import orders_svc.item.api
import orders_svc.order.api
from orders_svc.bootstrap import Resources
from orders_svc.order.admission import EarlyRefusal
from orders_svc.service_clients import ServiceClients
from shared.web import http
from shared.web.auth import RequestAuthenticator


def create_app(
    resources: Resources, authenticator: RequestAuthenticator, service_clients: ServiceClients
) -> FastAPI:
    """The HTTP application over opened resources."""
    # The router tries them in this order, and most requests are about orders.
    routers = [orders_svc.order.api.router, orders_svc.item.api.router]
    app = http.create_app(
        "orders-svc", routers, pool=resources.pool, resources=resources, authenticator=authenticator
    )
    app.state.service_clients = service_clients
    app.add_middleware(EarlyRefusal, admission=resources.admission)
    return app
