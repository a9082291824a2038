"""The counts: the local lines of each buyer in an hour, and the totals of the hours."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from analytics_faust.joins import Purchase

BuyerLines = Mapping[str, tuple[int, int, int]]
"""By line: version of the order, quantity and cents. Read back from JSON, they are lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    local_buyers: int = 0
    purchases: int = 0
    quantity: int = 0
    cents: int = 0

    def plus(self, other: "Totals", sign: int = 1) -> "Totals":
        return Totals(
            local_buyers=self.local_buyers + sign * other.local_buyers,
            purchases=self.purchases + sign * other.purchases,
            quantity=self.quantity + sign * other.quantity,
            cents=self.cents + sign * other.cents,
        )


NOTHING = Totals()


def to_key(purchase: Purchase) -> str:
    """The key of a buyer in an hour: `2016-11-11T00:00:00+00:00|<user_id>`."""
    return f"{purchase.hour.isoformat()}|{purchase.user_id}"


def hour_from_key(key: str) -> datetime:
    """The hour of a key made by `to_key`."""
    return datetime.fromisoformat(key.partition("|")[0])


def add_purchase(lines: BuyerLines, purchase: Purchase) -> BuyerLines:
    """The lines with a purchase added. The same one again, or an older version, changes nothing.

    So a record that is delivered twice counts once. A cancelled line stays: its version keeps a
    late repeat of the confirmation from counting.
    """
    version, *_ = lines.get(purchase.line, (0,))
    if purchase.version <= version:
        return lines
    return {**lines, purchase.line: (purchase.version, purchase.quantity, purchase.cents)}


def get_totals(lines: BuyerLines) -> Totals:
    """What one buyer adds to their hour."""
    counted = [(quantity, cents) for _, quantity, cents in lines.values() if quantity]
    return Totals(
        local_buyers=1 if counted else 0,
        purchases=len(counted),
        quantity=sum(quantity for quantity, _ in counted),
        cents=sum(cents for _, cents in counted),
    )


class Hours:
    """The totals of all hours, in memory; rebuilt from the table of buyers at each start."""

    def __init__(self) -> None:
        self._totals: dict[datetime, Totals] = {}

    def rebuild(self, buyers: Iterable[tuple[str, BuyerLines]]) -> None:
        """Forget all totals, and count these buyers."""
        self._totals.clear()
        for key, lines in buyers:
            self.change(hour_from_key(key), {}, lines)

    def change(self, hour: datetime, before: BuyerLines, after: BuyerLines) -> None:
        """Replace the contribution of one buyer's lines `before` by that of `after`."""
        totals = self.get(hour).plus(get_totals(before), -1).plus(get_totals(after))
        if totals == NOTHING:
            self._totals.pop(hour, None)
        else:
            self._totals[hour] = totals

    def get(self, hour: datetime) -> Totals:
        """An hour without local purchases has zeros."""
        return self._totals.get(hour, NOTHING)

    def list(
        self,
        *,
        since: datetime | None,
        until: datetime | None,
        after: datetime | None,
        limit: int,
    ) -> list[tuple[datetime, Totals]]:
        """Hours in [since, until) and later than `after` with local purchases, at most `limit`."""
        chosen = (
            hour
            for hour in sorted(self._totals)
            if (since is None or hour >= since)
            and (until is None or hour < until)
            and (after is None or hour > after)
        )
        return [(hour, self._totals[hour]) for hour, _ in zip(chosen, range(limit), strict=False)]
