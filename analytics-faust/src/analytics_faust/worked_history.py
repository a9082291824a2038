"""An example history where the two answers differ, played through the program's own joins.

Jack moves from BJ to SH at half past midnight, and buys an ipad from SH and an iphone from BJ a
minute later. The two variants differ only in what arrives first, the move or the orders.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID, uuid5

from analytics_faust.buyers import BuyerLines, Hours, Totals, add_purchase, to_key
from analytics_faust.joins import Purchase, to_lines, to_purchase
from analytics_faust.messages import OrderConfirmed, OrderLine

NAMES = UUID("0f0a5a3e-6f0e-5d6c-9a58-7c1a3a1d2b11")
MIDNIGHT = datetime(2016, 11, 11, tzinfo=UTC)
ORIGINS = {"iphone": "BJ", "ipad": "SH"}
PRICES = {"iphone": Decimal("5388.88"), "ipad": Decimal("4888.88")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lives:
    """Jack lives at `address` from `since` on."""

    address: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Buys:
    """Jack orders one item."""

    item: str
    at: datetime


Fact = Lives | Buys


def minute(number: int) -> datetime:
    return MIDNIGHT + timedelta(minutes=number)


REGISTERED = Lives(address="BJ", since=minute(-60))
BEFORE = Buys(item="iphone", at=minute(0))
MOVE = Lives(address="SH", since=minute(30))
AFTER = (Buys(item="ipad", at=minute(31)), Buys(item="iphone", at=minute(31)))

MOVE_ANNOUNCED_AT_ONCE: Sequence[Fact] = (REGISTERED, BEFORE, MOVE, *AFTER)
MOVE_ANNOUNCED_LATE: Sequence[Fact] = (REGISTERED, BEFORE, *AFTER, MOVE)


def count_by_arrival(facts: Iterable[Fact]) -> Totals:
    """The totals when each order is joined with the address that arrived last: as here, and in
    Kafka Streams."""
    address: str | None = None
    purchases: list[Purchase] = []
    for number, fact in enumerate(facts):
        if isinstance(fact, Lives):
            address = fact.address
        else:
            purchases += to_purchases(fact, number, address)
    return count_totals(purchases)


def count_by_event_time(facts: Iterable[Fact]) -> Totals:
    """The totals when each order is joined with the address as of its own time: as in Spark."""
    known = list(facts)
    lives = sorted((each for each in known if isinstance(each, Lives)), key=lambda each: each.since)
    purchases: list[Purchase] = []
    for number, fact in enumerate(known):
        if isinstance(fact, Buys):
            held = [each.address for each in lives if each.since <= fact.at]
            purchases += to_purchases(fact, number, held[-1] if held else None)
    return count_totals(purchases)


def to_purchases(fact: Buys, number: int, address: str | None) -> Iterable[Purchase]:
    """The local purchases of an order when its user lives at `address`."""
    order = OrderConfirmed(
        order_id=uuid5(NAMES, str(number)),
        user_id=uuid5(NAMES, "Jack"),
        lines=(
            OrderLine(item_id=uuid5(NAMES, fact.item), quantity=1, unit_price=PRICES[fact.item]),
        ),
        ordered_at=fact.at,
    )
    joined = (to_purchase(line, ORIGINS[fact.item]) for line in to_lines(order, 2, address))
    return [purchase for purchase in joined if purchase is not None]


def count_totals(purchases: Iterable[Purchase]) -> Totals:
    """The totals of MIDNIGHT's hour, in which all purchases are."""
    hours, buyers = Hours(), dict[str, BuyerLines]()
    for purchase in purchases:
        before: Mapping[str, tuple[int, int, int]] = buyers.get(to_key(purchase), {})
        after = buyers[to_key(purchase)] = add_purchase(before, purchase)
        hours.change(purchase.hour, before, after)
    return hours.get(MIDNIGHT)
