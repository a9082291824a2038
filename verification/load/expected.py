"""What analytics and credit must be: computed from the responses, slowly and obviously.

This is independent of how the services do it: plain Python over what clients received.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

By = Literal["origin", "item", "address", "gender", "type"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """A value that is valid from `effective_at` on. At the same instant the higher version wins."""

    effective_at: datetime
    version: int
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    item_id: str
    quantity: int
    unit_price: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order in its last state; `was_confirmed` also if it was cancelled afterwards."""

    order_id: str
    user_id: str
    lines: tuple[Line, ...]
    ordered_at: datetime
    status: str
    was_confirmed: bool

    @property
    def amount(self) -> Decimal:
        return sum((line.quantity * line.unit_price for line in self.lines), Decimal(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """All responses of a run. Orders from before `late_before` are too late to be counted."""

    addresses: Mapping[str, Sequence[Since]]
    genders: Mapping[str, str]
    origins: Mapping[str, Sequence[Since]]
    types: Mapping[str, str]
    orders: Sequence[Order]
    late_before: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """A line of a confirmed order whose user lived where the item came from."""

    hour: datetime
    user: str
    item: str
    type: str
    place: str
    gender: str
    quantity: int
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    local_buyers: int
    purchases: int
    quantity: int
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """All purchases of an hour, from any place."""

    purchases: int
    quantity: int
    amount: Decimal


def get_value_at(values: Iterable[Since], instant: datetime) -> str | None:
    """The value at an instant; None before the first."""
    held = [each for each in values if each.effective_at <= instant]
    newest = max(held, key=lambda each: (each.effective_at, each.version), default=None)
    return newest.value if newest else None


def find_counted_orders(ledger: Ledger) -> Iterator[Order]:
    """The orders that count."""
    for order in ledger.orders:
        if order.status == "confirmed" and order.ordered_at >= ledger.late_before:
            yield order


def sum_everything(ledger: Ledger, hour: datetime) -> Everything:
    """All purchases of an hour."""
    lines = [
        line
        for order in find_counted_orders(ledger)
        if get_hour(order) == hour
        for line in order.lines
    ]
    return Everything(
        purchases=len(lines),
        quantity=sum(line.quantity for line in lines),
        amount=sum((line.quantity * line.unit_price for line in lines), Decimal(0)),
    )


def get_hour(order: Order) -> datetime:
    """The beginning of the order's hour."""
    return order.ordered_at.replace(minute=0, second=0, microsecond=0)


def find_local_purchases(ledger: Ledger) -> Iterator[Purchase]:
    """Every local purchase that counts."""
    for order in find_counted_orders(ledger):
        address = get_value_at(ledger.addresses.get(order.user_id, ()), order.ordered_at)
        for line in order.lines:
            origin = get_value_at(ledger.origins.get(line.item_id, ()), order.ordered_at)
            if address is not None and address == origin:
                yield Purchase(
                    hour=get_hour(order),
                    user=order.user_id,
                    item=line.item_id,
                    type=ledger.types[line.item_id],
                    place=address,
                    gender=ledger.genders[order.user_id],
                    quantity=line.quantity,
                    amount=line.quantity * line.unit_price,
                )


def sum_totals(purchases: Sequence[Purchase]) -> Totals:
    return Totals(
        local_buyers=len({each.user for each in purchases}),
        purchases=len(purchases),
        quantity=sum(each.quantity for each in purchases),
        amount=sum((each.amount for each in purchases), Decimal(0)),
    )


def split_totals(purchases: Sequence[Purchase], by: By) -> dict[str, Totals]:
    """The totals of each value that has some."""

    def value(purchase: Purchase) -> str:
        place = purchase.place
        return {
            "origin": place,
            "address": place,
            "item": purchase.item,
            "gender": purchase.gender,
            "type": purchase.type,
        }[by]

    values = {value(each) for each in purchases}
    return {
        each: sum_totals([purchase for purchase in purchases if value(purchase) == each])
        for each in values
    }


def sum_reserved_credit(ledger: Ledger) -> dict[str, Decimal]:
    """For each user the sum of their open and confirmed orders, late ones among them."""
    reserved = dict.fromkeys(ledger.genders, Decimal(0))
    for order in ledger.orders:
        if order.status in ("pending", "confirmed"):
            reserved[order.user_id] += order.amount
    return reserved


def count_counted(ledger: Ledger) -> int:
    """Orders that analytics counted, whether or not they were cancelled later."""
    return sum(
        order.was_confirmed and order.ordered_at >= ledger.late_before for order in ledger.orders
    )


def count_late(ledger: Ledger) -> int:
    """Confirmed orders that were too late."""
    return sum(
        order.was_confirmed and order.ordered_at < ledger.late_before for order in ledger.orders
    )
