"""Compares what the APIs return at the end with what is expected; yields differences as text."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import get_args
from uuid import UUID

from test_support.system.clients import Hometown, Json, sum_lag
from verification.load import checks, expected
from verification.load.driver import Run
from verification.load.expected import By, Everything, Ledger, Totals
from verification.load.ledger import create_ledger
from verification.load.window import Window

PAGE = 200
NO_TOTALS = Totals(local_buyers=0, purchases=0, quantity=0, amount=Decimal(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What all APIs return at one moment. Orders and users are those of this run, by id."""

    orders: Mapping[str, Json]
    users: Mapping[str, Json]
    status: Json
    hours: Mapping[tuple[datetime, By], Json]

    @property
    def lag(self) -> int | None:
        """Records that analytics has not counted; None while Kafka does not report it."""
        return sum_lag(self.status)

    @property
    def pending(self) -> int:
        return sum(order["status"] == "pending" for order in self.orders.values())


def observe(hometown: Hometown, run: Run, window: Window) -> Observation:
    """Raises httpx.HTTPError when a process is unavailable."""
    order_ids = set(run.ids.orders.known.values())
    user_ids = set(run.ids.users.known.values())
    return Observation(
        orders=list_by_id(hometown.list_orders, "order", order_ids),
        users=list_by_id(hometown.list_users, "user", user_ids),
        status=hometown.status(),
        hours={(hour, by): hometown.hour(hour, by) for hour in window.hours for by in get_args(By)},
    )


def list_by_id(fetch: Callable[..., Json], name: str, ids: set[str]) -> dict[str, Json]:
    """Those of `ids` that are listed, by id. Lists are ordered by id, which grows with time."""
    found: dict[str, Json] = {}
    after = str(UUID(int=int(UUID(min(ids))) - 1)) if ids else None
    while after is not None:
        page = fetch(after=after, limit=PAGE)
        found |= {each[f"{name}_id"]: each for each in page[f"{name}s"]}
        after = page["next"]
    return {id_: each for id_, each in found.items() if id_ in ids}


def find_differences(run: Run, window: Window, before: Json, seen: Observation) -> list[str]:
    """A line for each difference; `before` is the status before the run."""
    ledger = create_ledger(run, seen.orders, window.begins_at)
    limits = {user: Decimal(each["credit_limit"]) for user, each in seen.users.items()}
    found = [*checks.check_responses(run), *checks.check_prices(run), *checks.check_limits(run)]
    found += compare_orders(ledger, seen)
    found += compare_credit(ledger, seen)
    if limits.keys() == ledger.genders.keys():
        found += checks.check_rejections(ledger, seen.orders, limits)
    found += compare_counts(ledger, before, seen.status)
    found += compare_hours(ledger, seen.hours)
    return found


def compare_orders(ledger: Ledger, seen: Observation) -> Iterator[str]:
    for order in ledger.orders:
        listed = seen.orders.get(order.order_id, {"status": "missing"})["status"]
        if listed != order.status or listed == "pending":
            yield f"order {order.order_id}: listed as {listed}, expected {order.status}"


def compare_credit(ledger: Ledger, seen: Observation) -> Iterator[str]:
    for user, reserved in expected.sum_reserved_credit(ledger).items():
        listed = seen.users.get(user)
        if listed is None:
            yield f"user {user}: not listed"
            continue
        limit = Decimal(listed["credit_limit"])
        if Decimal(listed["reserved_credit"]) != reserved:
            yield f"user {user}: {listed['reserved_credit']} reserved, expected {reserved}"
        if reserved > limit:
            yield f"user {user}: {reserved} reserved, above the limit of {limit}"


def compare_counts(ledger: Ledger, before: Json, after: Json) -> Iterator[str]:
    wanted = {
        "orders_counted": expected.count_counted(ledger),
        "late_orders": expected.count_late(ledger),
        "bad_records": 0,
    }
    for name, count in wanted.items():
        grown = after[name] - before[name]
        if grown != count:
            yield f"status: {name} grew by {grown}, expected {count}"


def compare_hours(ledger: Ledger, answered: Mapping[tuple[datetime, By], Json]) -> Iterator[str]:
    purchases = list(expected.find_local_purchases(ledger))
    for (hour, by), answer in answered.items():
        of_hour = [each for each in purchases if each.hour == hour]
        name = f"hour {hour:%Y-%m-%d %H}"
        yield from compare_cells(name, {"all": expected.sum_totals(of_hour)}, {"all": answer})
        got, right = parse_everything(answer["all"]), expected.sum_everything(ledger, hour)
        if got != right:
            yield f"{name}, wherever from: {got}; expected {right}"
        cells = {cell[by]: cell for cell in answer["cells"]}
        yield from compare_cells(f"{name} by {by}", expected.split_totals(of_hour, by), cells)


def compare_cells(
    name: str, wanted: Mapping[str, Totals], answered: Mapping[str, Json]
) -> Iterator[str]:
    """A missing cell equals one with zeros."""
    for value in sorted(wanted.keys() | answered.keys()):
        right = wanted.get(value, NO_TOTALS)
        got = parse_totals(answered[value]) if value in answered else NO_TOTALS
        if got != right:
            yield f"{name}, {value}: {format_totals(got)}; expected {format_totals(right)}"


def parse_totals(cell: Json) -> Totals:
    return Totals(
        local_buyers=cell["local_buyers"],
        purchases=cell["purchases"],
        quantity=cell["quantity"],
        amount=Decimal(cell["amount"]),
    )


def parse_everything(answer: Json) -> Everything:
    """The totals of all purchases in the response for an hour."""
    return Everything(
        purchases=answer["purchases"],
        quantity=answer["quantity"],
        amount=Decimal(answer["amount"]),
    )


def format_totals(totals: Totals) -> str:
    return (
        f"{totals.local_buyers} buyers, {totals.purchases} purchases,"
        f" quantity {totals.quantity}, amount {totals.amount}"
    )


def count_hours(hours: Sequence[datetime], ledger: Ledger) -> int:
    """How many of the hours have local purchases."""
    return len({each.hour for each in expected.find_local_purchases(ledger)} & set(hours))
