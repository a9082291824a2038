"""What was acknowledged to the clients, compared with what is recorded and counted."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Literal

CONFIRMED = "order-confirmed"
PENDING = "order-placed"
"""The last event of an order that is not decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What the system holds: the event types of each order, oldest first, the number of moves of
    each user, the number of orders that analytics has counted (None: no job runs), and the findings
    of the audit. `is_idle` is whether analytics has read all records."""

    orders: Mapping[str, Sequence[str]]
    moves: Mapping[str, int]
    counted: int | None
    is_idle: bool = True
    unbalanced: Sequence[str] = ()

    @property
    def confirmed(self) -> int:
        return sum(CONFIRMED in types for types in self.orders.values())


@dataclass(slots=True)
class Ledger:
    """What was acknowledged. `uncounted` is how many confirmed orders are known not to be counted:
    0, unless an earlier step lost some."""

    orders: set[str] = field(default_factory=set)
    moves: Counter[str] = field(default_factory=Counter)
    uncounted: int = 0

    def copy(self) -> "Ledger":
        return deepcopy(self)

    def adopt(self, stored: Stored) -> None:
        """Start from what is stored, so that a loss is reported once."""
        self.orders = set(stored.orders)
        self.moves = Counter(stored.moves)
        if stored.counted is not None:
            self.uncounted = stored.confirmed - stored.counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`count` orders or moves that are lost, or there twice."""

    kind: Literal["lost", "twice"]
    count: int
    text: str


def compare(ledger: Ledger, stored: Stored) -> list[Finding]:
    """What is lost, and what is there twice; empty once everything is decided and counted."""
    return [
        *compare_orders(ledger, stored),
        *compare_moves(ledger, stored),
        *compare_counted(ledger, stored),
        *(Finding(kind="lost", count=1, text=each) for each in stored.unbalanced),
    ]


def compare_orders(ledger: Ledger, stored: Stored) -> Iterator[Finding]:
    for order in sorted(ledger.orders - stored.orders.keys()):
        yield Finding(kind="lost", count=1, text=f"order {order} was acknowledged, not recorded")
    for order in sorted(stored.orders.keys() - ledger.orders):
        yield Finding(kind="twice", count=1, text=f"order {order} was recorded, not acknowledged")
    for order, types in sorted(stored.orders.items()):
        if types[-1] == PENDING:
            yield Finding(kind="lost", count=1, text=f"order {order} was never decided")


def compare_moves(ledger: Ledger, stored: Stored) -> Iterator[Finding]:
    for user in sorted(ledger.moves.keys() | stored.moves.keys()):
        more = stored.moves.get(user, 0) - ledger.moves[user]
        text = f"user {user} moved {ledger.moves[user]} times, recorded {stored.moves.get(user, 0)}"
        if more:
            yield Finding(kind="twice" if more > 0 else "lost", count=abs(more), text=text)


def compare_counted(ledger: Ledger, stored: Stored) -> Iterator[Finding]:
    if stored.counted is None:
        return
    right = stored.confirmed - ledger.uncounted
    more = stored.counted - right
    text = f"{right} orders are confirmed, {stored.counted} are counted"
    if more:
        yield Finding(kind="twice" if more > 0 else "lost", count=abs(more), text=text)


def count(findings: Sequence[Finding], kind: str) -> int:
    return sum(each.count for each in findings if each.kind == kind)
