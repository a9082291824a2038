"""The least work of an API for orders: the same schemas in and out, and one INSERT."""

from datetime import UTC, datetime
from decimal import Decimal

import asyncpg
from fastapi import FastAPI, Response

from orders_svc.order.schemas import OrderLineResponse, OrderResponse, PlaceOrderRequest
from shared.runtime import postgres, processes
from shared.runtime.identifiers import new_id
from shared.runtime.settings import Settings
from shared.web import api_process

PRICE = Decimal("1.00")

# Another part can have created it on the same server.
CREATE = """
    CREATE TABLE IF NOT EXISTS plain_orders
        (order_id uuid PRIMARY KEY, user_id uuid NOT NULL, content json)
"""
INSERT = "INSERT INTO plain_orders (order_id, user_id, content) VALUES ($1, $2, $3)"


async def main(settings: Settings) -> None:
    """With the pool and the server of orders-api; without its token, limits and traces."""
    async with postgres.open_pool(
        settings.database_dsn, name="bare", connections_max=settings.database_connections_max
    ) as pool:
        await api_process.serve_api(create_app(pool), settings)


def create_app(pool: asyncpg.Pool) -> FastAPI:
    app = FastAPI(telemetry={"tracing": False, "metrics": False, "logs": False})

    @app.post("/v1/orders", status_code=201)
    async def place(body: PlaceOrderRequest) -> Response:
        order = create_order(body)
        content = order.model_dump_json()
        await pool.execute(INSERT, order.order_id, order.user_id, content)
        return Response(content, 201, media_type="application/json")

    @app.get("/health/ready")
    async def ready() -> None:
        """The pool is open."""

    return app


def create_order(body: PlaceOrderRequest) -> OrderResponse:
    lines = [
        OrderLineResponse(item_id=line.item_id, quantity=line.quantity, unit_price=PRICE)
        for line in body.lines
    ]
    return OrderResponse(
        order_id=new_id(),
        user_id=body.user_id,
        status="pending",
        reason=None,
        lines=lines,
        amount=PRICE * sum(line.quantity for line in lines),
        ordered_at=datetime.now(UTC),
    )


if __name__ == "__main__":
    processes.run(main(processes.read_settings(Settings)))
