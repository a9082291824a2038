"""The forms that values have in requests, the same at every service: money, places, instants."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    StringConstraints,
    WithJsonSchema,
)

FUTURE_MAX = timedelta(minutes=5)
"""How far a client's clock may be ahead of ours."""


def only_text(amount: object) -> object:
    """A JSON number is a binary float to most clients, which cannot hold cents exactly."""
    if not isinstance(amount, str):
        raise ValueError("is a string with at most two decimals, such as '5388.88'")
    return amount


def two_decimals(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"))


def not_in_the_future(instant: datetime) -> datetime:
    if instant > datetime.now(UTC) + FUTURE_MAX:
        raise ValueError(f"is more than {FUTURE_MAX.seconds // 60} minutes in the future")
    return instant


Money = Annotated[
    Decimal,
    BeforeValidator(only_text),
    Field(ge=0, max_digits=12, decimal_places=2),
    AfterValidator(two_decimals),
    WithJsonSchema({"type": "string", "pattern": r"^\d{1,10}(\.\d{1,2})?$"}),
]
NO_CONTROL_CHARACTER = r"^[^\x00-\x1f\x7f]+$"
"""PostgreSQL's text cannot hold U+0000, and nobody means the others."""

Place = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, to_upper=True, max_length=32, pattern=NO_CONTROL_CHARACTER
    ),
]
Label = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=200, pattern=NO_CONTROL_CHARACTER)
]
PastInstant = Annotated[AwareDatetime, AfterValidator(not_in_the_future)]
