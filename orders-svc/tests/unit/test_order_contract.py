"""The public events of orders.v1."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

from orders_svc.order import contract
from orders_svc.order.events import OrderConfirmed, OrderLine

CONFIRMED = OrderConfirmed(
    order_id=UUID(int=1),
    user_id=UUID(int=2),
    lines=(OrderLine(item_id=UUID(int=3), quantity=3, unit_price=Decimal("5388.88")),),
    amount=Decimal("16166.64"),
    ordered_at=datetime(2016, 11, 11, 0, 0, 1, tzinfo=UTC),
)


def test_the_key_of_an_order_is_its_user() -> None:
    """Trap T5: by another key, a user's orders and cancellations could overtake each other."""
    assert contract.publish(CONFIRMED).key == str(UUID(int=2))


def test_a_confirmed_order_is_published_whole_with_exact_money() -> None:
    assert json.loads(contract.publish(CONFIRMED).value) == {
        "order_id": str(UUID(int=1)),
        "user_id": str(UUID(int=2)),
        "lines": [{"item_id": str(UUID(int=3)), "quantity": 3, "unit_price": "5388.88"}],
        "amount": "16166.64",
        "ordered_at": "2016-11-11T00:00:01Z",
    }
