"""The two joins, as pure functions: an order's lines with their user, a line with its item.

Each sees the one value that its table has when the record arrives; nothing is corrected later.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

from pydantic import TypeAdapter

from analytics_faust.messages import Order, OrderCancelled, OrderConfirmed


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of an order, on its way from its user to its item.

    `address` is where the user lives; a cancelled line has none, as it takes out what was counted,
    wherever that was.
    """

    order_id: UUID
    number: int
    version: int
    user_id: UUID
    item_id: UUID
    ordered_at: datetime
    quantity: int
    cents: int
    address: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """What a line adds to its hour; a quantity of 0 takes it out again."""

    hour: datetime
    user_id: UUID
    line: str
    version: int
    quantity: int
    cents: int


LINE: TypeAdapter[Line] = TypeAdapter(Line)
PURCHASE: TypeAdapter[Purchase] = TypeAdapter(Purchase)


def to_lines(order: Order, version: int, address: str | None) -> list[Line]:
    """The lines to be joined with items; `address` is the user's, None for an unknown user.

    An inner join: a confirmed order of an unknown user has no lines, and is permanently lost.
    """
    match order:
        case OrderConfirmed():
            return make_lines(order, version, address) if address is not None else []
        case OrderCancelled():
            # One that was cancelled before it was confirmed never counted.
            return make_lines(order, version, None) if order.was_confirmed else []


def make_lines(order: Order, version: int, address: str | None) -> list[Line]:
    return [
        Line(
            order_id=order.order_id,
            number=number,
            version=version,
            user_id=order.user_id,
            item_id=line.item_id,
            ordered_at=order.ordered_at,
            quantity=line.quantity,
            cents=line.quantity * to_cents(line.unit_price),
            address=address,
        )
        for number, line in enumerate(order.lines)
    ]


def to_purchase(line: Line, origin: str | None) -> Purchase | None:
    """What the line adds to its hour; `origin` is the item's, None for an unknown item."""
    if line.address is None:
        return make_purchase(line, quantity=0, cents=0)
    if line.address == origin:
        return make_purchase(line, quantity=line.quantity, cents=line.cents)
    return None


def make_purchase(line: Line, *, quantity: int, cents: int) -> Purchase:
    return Purchase(
        hour=get_hour_start(line.ordered_at),
        user_id=line.user_id,
        line=f"{line.order_id}:{line.number}",
        version=line.version,
        quantity=quantity,
        cents=cents,
    )


def get_hour_start(instant: datetime) -> datetime:
    """The beginning of the instant's hour, in UTC."""
    return instant.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def to_cents(amount: Decimal) -> int:
    return int(amount.scaleb(2))
