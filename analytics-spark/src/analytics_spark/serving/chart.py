"""Numbers as bars: their heights, their scale, and their labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from analytics_spark.serving.hour_queries import HOUR, NOTHING, Totals, is_final

TICKS_MAX = 4
"""Lines of the scale above zero."""

Measure = Literal["buyers", "purchases", "quantity", "amount"]
MEASURES: Mapping[Measure, str] = {
    "buyers": "local buyers",
    "purchases": "purchases",
    "quantity": "quantity",
    "amount": "amount",
}
TITLES: Mapping[Measure, str] = {
    "buyers": "Local buyers",
    "purchases": "Local purchases",
    "quantity": "Quantity bought locally",
    "amount": "Amount spent locally",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A line of the scale; `at` is its height as a fraction of the chart."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """An hour; `size` is its height as a fraction of the chart."""

    hour: datetime
    totals: Totals
    text: str
    size: float
    is_final: bool

    @property
    def is_empty(self) -> bool:
        return self.totals.purchases == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    bars: Sequence[Bar]
    ticks: Sequence[Tick]


def chart(
    first: datetime,
    until: datetime,
    found: Mapping[datetime, Totals],
    watermark: datetime | None,
    measure: Measure,
) -> Chart:
    """A bar for each hour in [first, until), also for hours without purchases."""
    slots = [first + HOUR * number for number in range((until - first) // HOUR)]
    totals = [found.get(hour, NOTHING) for hour in slots]
    step, top = scale(max((get_number(each, measure) for each in totals), default=0), measure)
    bars = [
        Bar(
            hour=hour,
            totals=each,
            text=format_number(each, measure),
            size=get_number(each, measure) / top,
            is_final=is_final(hour, watermark),
        )
        for hour, each in zip(slots, totals, strict=True)
    ]
    ticks = [Tick(at=at / top, text=tick_text(at, measure)) for at in range(0, top + 1, step)]
    return Chart(bars=bars, ticks=ticks)


def get_number(totals: Totals, measure: Measure) -> int:
    """The number that a bar shows; money in cents."""
    match measure:
        case "buyers":
            return totals.local_buyers
        case "purchases":
            return totals.purchases
        case "quantity":
            return totals.quantity
        case "amount":
            return totals.cents


def format_number(totals: Totals, measure: Measure) -> str:
    number = get_number(totals, measure)
    return money(number) if measure == "amount" else f"{number:,}"


def money(cents: int) -> str:
    return f"{Decimal(cents).scaleb(-2):,.2f}"


def tick_text(at: int, measure: Measure) -> str:
    """Amounts on the scale are whole."""
    return f"{at // 100:,}" if measure == "amount" else f"{at:,}"


def scale(largest: int, measure: Measure) -> tuple[int, int]:
    """The step and the top of a scale: 1, 2 or 5 times a power of ten, at most TICKS_MAX steps."""
    unit = 100 if measure == "amount" else 1
    while True:
        for factor in (1, 2, 5):
            steps = max(-(-largest // (unit * factor)), 1)
            if steps <= TICKS_MAX:
                return unit * factor, unit * factor * steps
        unit *= 10
