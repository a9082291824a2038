"""Does all reserved credit match the orders, to the cent? Reads both databases, at any time.

make audit

Each database is read for the events of its service. The version up to which users-svc has consumed
each order is known (`consumed_versions`), so nothing has to be stopped: an order must hold exactly
the credit that follows from the events that users-svc has consumed. The users are read first: what
they had consumed by then is already in the orders' database.
"""

import argparse
import asyncio
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

import asyncpg

from local_stack.postgres import dsn
from local_stack.settings import Settings
from local_stack.status import as_found
from shared.runtime.postgres import Connection

QUERY_SECONDS_MAX = 300
FINDINGS_SHOWN_MAX = 20
ZERO = Decimal("0.00")

HOLDINGS = """
    SELECT (data->>'user_id')::uuid AS user_id,
        (data->>'order_id')::uuid AS order_id,
        sum(CASE type WHEN 'credit-reserved' THEN (data->>'amount')::numeric
                      WHEN 'credit-released' THEN -(data->>'amount')::numeric
                      ELSE 0 END) AS reserved,
        coalesce(sum((data->>'amount')::numeric) FILTER (WHERE type = 'credit-reserved'), 0)
            AS granted,
        bool_or(type = 'credit-refused') AS refused
    FROM events
    WHERE type IN ('credit-reserved', 'credit-released', 'credit-refused')
      AND ($1::uuid[] IS NULL OR stream_id = ANY($1))
    GROUP BY 1, 2
"""

LIMITS = """
    SELECT DISTINCT ON (stream_id) stream_id AS user_id, (data->>'credit_limit')::numeric AS amount
    FROM events
    WHERE type IN ('user-registered', 'user-credit-limit-changed')
      AND ($1::uuid[] IS NULL OR stream_id = ANY($1))
    ORDER BY stream_id, version DESC
"""

TAKEN = """
    SELECT stream_id AS order_id, version
    FROM consumed_versions
    WHERE consumer = 'users-worker' AND topic IN ('orders.v1', '')
      AND ($1::uuid[] IS NULL OR stream_id = ANY($1))
"""

STORIES = """
    SELECT stream_id AS order_id, version, type, (data->>'user_id')::uuid AS user_id,
        (data->>'amount')::numeric AS amount
    FROM events
    WHERE type LIKE 'order-%' AND ($1::uuid[] IS NULL OR stream_id = ANY($1))
    ORDER BY stream_id, version
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The credit events of users-svc for one order."""

    reserved: Decimal
    granted: Decimal
    refused: bool


NOTHING = Holding(reserved=ZERO, granted=ZERO, refused=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order: the types of its events, oldest first; version 1 is its placement."""

    user_id: UUID
    amount: Decimal
    types: Sequence[str]

    def status_at(self, version: int) -> str | None:
        """The last event up to a version, None before the first."""
        return self.types[min(version, len(self.types)) - 1] if version else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """Both services' accounts."""

    limits: Mapping[UUID, Decimal]
    holdings: Mapping[tuple[UUID, UUID], Holding]
    taken: Mapping[UUID, int]
    orders: Mapping[UUID, Order]


async def read_books(
    users: Connection,
    orders: Connection,
    *,
    only_users: Sequence[UUID] | None = None,
    only_orders: Sequence[UUID] | None = None,
) -> Books:
    """The accounts of these users and orders, or of all. `users` and `orders` are connections."""
    async with users.transaction(isolation="repeatable_read", readonly=True):
        holdings = await users.fetch(HOLDINGS, only_users, timeout=QUERY_SECONDS_MAX)
        limits = await users.fetch(LIMITS, only_users, timeout=QUERY_SECONDS_MAX)
        taken = await users.fetch(TAKEN, only_orders, timeout=QUERY_SECONDS_MAX)
    stories = await orders.fetch(STORIES, only_orders, timeout=QUERY_SECONDS_MAX)
    known_orders = group_orders(stories)
    return Books(
        limits={row["user_id"]: row["amount"] for row in limits},
        holdings={
            (row["user_id"], row["order_id"]): Holding(
                reserved=row["reserved"], granted=row["granted"], refused=row["refused"]
            )
            for row in holdings
        },
        taken={row["order_id"]: row["version"] for row in taken if row["order_id"] in known_orders},
        orders=known_orders,
    )


def group_orders(stories: Iterable[asyncpg.Record]) -> dict[UUID, Order]:
    rows: defaultdict[UUID, list[asyncpg.Record]] = defaultdict(list)
    for row in stories:
        rows[row["order_id"]].append(row)
    return {
        order_id: Order(
            user_id=story[0]["user_id"],
            amount=story[0]["amount"],
            types=[row["type"] for row in story],
        )
        for order_id, story in rows.items()
    }


def findings(books: Books) -> Iterator[str]:
    """A line for each fault; none when the books balance."""
    yield from find_above_limits(books)
    for order_id, order in books.orders.items():
        holding = books.holdings.get((order.user_id, order_id), NOTHING)
        due = compute_credit_due(order, holding, books.taken.get(order_id, 0))
        if holding.reserved != due:
            yield f"order {order_id} holds {holding.reserved} of credit, and {due} are due"
        if "order-confirmed" in order.types and holding.granted != order.amount:
            yield f"order {order_id} of {order.amount} is confirmed on {holding.granted} of credit"
    for user_id, order_id in books.holdings:
        if order_id not in books.orders:
            yield f"user {user_id} holds credit for {order_id}, which is no order"


def find_above_limits(books: Books) -> Iterator[str]:
    reserved: defaultdict[UUID, Decimal] = defaultdict(Decimal)
    for (user_id, _), holding in books.holdings.items():
        reserved[user_id] += holding.reserved
    for user_id, amount in reserved.items():
        limit = books.limits.get(user_id, ZERO)
        if amount > limit:
            yield f"user {user_id} has {amount} reserved, and a limit of {limit}"


def compute_credit_due(order: Order, holding: Holding, taken: int) -> Decimal:
    """What an order must hold once users-svc has consumed its events up to version `taken`."""
    open_or_confirmed = order.status_at(taken) in ("order-placed", "order-confirmed")
    return order.amount if open_or_confirmed and not holding.refused else ZERO


async def audit(users_dsn: str, orders_dsn: str) -> Books:
    users, orders = await asyncpg.connect(users_dsn), await asyncpg.connect(orders_dsn)
    try:
        return await read_books(users, orders)
    finally:
        await users.close()
        await orders.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()
    context = as_found(Settings())
    try:
        books = asyncio.run(audit(dsn(context, "users"), dsn(context, "orders")))
    except (OSError, KeyError, asyncpg.PostgresError) as error:
        sys.exit(f"hometown: the databases cannot be read: {error} (start them: make up)")
    wrong = list(findings(books))
    for line in wrong[:FINDINGS_SHOWN_MAX]:
        sys.stdout.write(f"{line}\n")
    reserved = sum((each.reserved for each in books.holdings.values()), ZERO)
    sys.stdout.write(
        f"{len(books.limits)} users, {len(books.orders)} orders, {reserved} reserved:"
        f" {f'{len(wrong)} do not balance' if wrong else 'all balance, to the cent'}\n"
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
