"""What the services answer at the end, beside what is expected; the differences in words."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import get_args
from uuid import UUID

from test_support.system.clients import Hometown, Json
from verification.load import checks, expected
from verification.load.driver import Run
from verification.load.expected import By, Everything, Ledger, Totals
from verification.load.ledger import ledger_of
from verification.load.window import Window

PAGE = 200
NOBODY = Totals(local_buyers=0, purchases=0, quantity=0, amount=Decimal(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What all APIs answer at one moment. Orders and users are this run's, by id."""

    orders: Mapping[str, Json]
    users: Mapping[str, Json]
    status: Json
    hours: Mapping[tuple[datetime, By], Json]

    @property
    def lag(self) -> int | None:
        """Records that analytics has not counted; None while Kafka does not say."""
        return lag_of(self.status)

    @property
    def pending(self) -> int:
        return sum(order["status"] == "pending" for order in self.orders.values())


def lag_of(status: Json) -> int | None:
    lag = status["lag"]
    if lag is None:
        return None
    return sum(int(behind) for partitions in lag.values() for behind in partitions.values())


def observe(hometown: Hometown, run: Run, window: Window) -> Observation:
    """Raises httpx.HTTPError when a process is not there."""
    order_ids = set(run.names.orders.known.values())
    user_ids = set(run.names.users.known.values())
    return Observation(
        orders=paged(hometown.list_orders, "order", order_ids),
        users=paged(hometown.list_users, "user", user_ids),
        status=hometown.status(),
        hours={(hour, by): hometown.hour(hour, by) for hour in window.hours for by in get_args(By)},
    )


def paged(fetch: Callable[..., Json], name: str, ids: set[str]) -> dict[str, Json]:
    """The listed ones of these, by id. They are listed by id, which grows with time."""
    found: dict[str, Json] = {}
    after = str(UUID(int=int(UUID(min(ids))) - 1)) if ids else None
    while after is not None:
        page = fetch(after=after, limit=PAGE)
        found |= {each[f"{name}_id"]: each for each in page[f"{name}s"]}
        after = page["next"]
    return {id_: each for id_, each in found.items() if id_ in ids}


def differences(run: Run, window: Window, before: Json, seen: Observation) -> list[str]:
    """All that is not as it must be; `before` is the status before the run."""
    ledger = ledger_of(run, seen.orders, window.begins_at)
    limits = {user: Decimal(each["credit_limit"]) for user, each in seen.users.items()}
    found = [*checks.answers_wrong(run), *checks.prices_wrong(run), *checks.limits_wrong(run)]
    found += orders_differ(ledger, seen)
    found += credit_differs(ledger, seen)
    if limits.keys() == ledger.genders.keys():
        found += checks.rejections_wrong(ledger, seen.orders, limits)
    found += counts_differ(ledger, before, seen.status)
    found += hours_differ(ledger, seen.hours)
    return found


def orders_differ(ledger: Ledger, seen: Observation) -> Iterator[str]:
    for order in ledger.orders:
        listed = seen.orders.get(order.order_id, {"status": "missing"})["status"]
        if listed != order.status or listed == "pending":
            yield f"order {order.order_id}: listed as {listed}, expected {order.status}"


def credit_differs(ledger: Ledger, seen: Observation) -> Iterator[str]:
    for user, reserved in expected.reserved_credit(ledger).items():
        listed = seen.users.get(user)
        if listed is None:
            yield f"user {user}: not listed"
            continue
        limit = Decimal(listed["credit_limit"])
        if Decimal(listed["reserved_credit"]) != reserved:
            yield f"user {user}: {listed['reserved_credit']} reserved, expected {reserved}"
        if reserved > limit:
            yield f"user {user}: {reserved} reserved, above the limit of {limit}"


def counts_differ(ledger: Ledger, before: Json, after: Json) -> Iterator[str]:
    wanted = {
        "orders_counted": expected.counted(ledger),
        "late_orders": expected.late(ledger),
        "bad_records": 0,
    }
    for name, count in wanted.items():
        grown = after[name] - before[name]
        if grown != count:
            yield f"status: {name} grew by {grown}, expected {count}"


def hours_differ(ledger: Ledger, answered: Mapping[tuple[datetime, By], Json]) -> Iterator[str]:
    purchases = list(expected.local_purchases(ledger))
    for (hour, by), answer in answered.items():
        of_hour = [each for each in purchases if each.hour == hour]
        name = f"hour {hour:%Y-%m-%d %H}"
        yield from cells_differ(name, {"all": expected.totals_of(of_hour)}, {"all": answer})
        got, right = everything_in(answer["all"]), expected.everything(ledger, hour)
        if got != right:
            yield f"{name}, wherever from: {got}; expected {right}"
        cells = {cell[by]: cell for cell in answer["cells"]}
        yield from cells_differ(f"{name} by {by}", expected.split(of_hour, by), cells)


def cells_differ(
    name: str, wanted: Mapping[str, Totals], answered: Mapping[str, Json]
) -> Iterator[str]:
    """A cell that is not answered is as one with zeros."""
    for value in sorted(wanted.keys() | answered.keys()):
        right = wanted.get(value, NOBODY)
        got = totals_in(answered[value]) if value in answered else NOBODY
        if got != right:
            yield f"{name}, {value}: {words(got)}; expected {words(right)}"


def totals_in(cell: Json) -> Totals:
    return Totals(
        local_buyers=cell["local_buyers"],
        purchases=cell["purchases"],
        quantity=cell["quantity"],
        amount=Decimal(cell["amount"]),
    )


def everything_in(answer: Json) -> Everything:
    """What an hour's answer says of all its purchases."""
    return Everything(
        purchases=answer["purchases"],
        quantity=answer["quantity"],
        amount=Decimal(answer["amount"]),
    )


def words(totals: Totals) -> str:
    return (
        f"{totals.local_buyers} buyers, {totals.purchases} purchases,"
        f" quantity {totals.quantity}, amount {totals.amount}"
    )


def concerned(hours: Sequence[datetime], ledger: Ledger) -> int:
    """How many of the hours have purchases."""
    return len({each.hour for each in expected.local_purchases(ledger)} & set(hours))
