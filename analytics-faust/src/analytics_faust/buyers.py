"""What is counted: the lines that each buyer of an hour bought from home, and the hours' totals."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from analytics_faust.joins import Purchase

Bought = Mapping[str, tuple[int, int, int]]
"""By line: the version of the order that said it, quantity and cents. JSON has lists of them."""


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


def key_of(purchase: Purchase) -> str:
    return f"{purchase.hour.isoformat()}|{purchase.user_id}"


def hour_in(key: str) -> datetime:
    """The hour of a key that `key_of` made."""
    return datetime.fromisoformat(key.partition("|")[0])


def with_purchase(bought: Bought, purchase: Purchase) -> Bought:
    """The lines after a purchase. The same one again, or an older version, changes nothing.

    So whatever is delivered twice counts once. A cancelled line stays, as its version is what
    keeps a late repeat of the confirmation from counting.
    """
    version, *_ = bought.get(purchase.line, (0,))
    if purchase.version <= version:
        return bought
    return {**bought, purchase.line: (purchase.version, purchase.quantity, purchase.cents)}


def totals_of(bought: Bought) -> Totals:
    """What one buyer adds to their hour."""
    counted = [(quantity, cents) for _, quantity, cents in bought.values() if quantity]
    return Totals(
        local_buyers=1 if counted else 0,
        purchases=len(counted),
        quantity=sum(quantity for quantity, _ in counted),
        cents=sum(cents for _, cents in counted),
    )


class Hours:
    """The totals of all hours, kept beside the table of buyers and made from it at each start."""

    def __init__(self) -> None:
        self._totals: dict[datetime, Totals] = {}

    def make_from(self, buyers: Iterable[tuple[str, Bought]]) -> None:
        """Forget all, and count these."""
        self._totals.clear()
        for key, bought in buyers:
            self.change(hour_in(key), {}, bought)

    def change(self, hour: datetime, before: Bought, after: Bought) -> None:
        """Count what one buyer bought now instead of what they had bought."""
        totals = self.get(hour).plus(totals_of(before), -1).plus(totals_of(after))
        if totals == NOTHING:
            self._totals.pop(hour, None)
        else:
            self._totals[hour] = totals

    def get(self, hour: datetime) -> Totals:
        """An hour in which nobody bought from home has zeros."""
        return self._totals.get(hour, NOTHING)

    def list(
        self,
        *,
        since: datetime | None,
        until: datetime | None,
        after: datetime | None,
        limit: int,
    ) -> list[tuple[datetime, Totals]]:
        """Hours in [since, until) and behind `after` in which somebody bought from home."""
        chosen = (
            hour
            for hour in sorted(self._totals)
            if (since is None or hour >= since)
            and (until is None or hour < until)
            and (after is None or hour > after)
        )
        return [(hour, self._totals[hour]) for hour, _ in zip(chosen, range(limit), strict=False)]
