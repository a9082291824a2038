"""The forms that values have in requests, the same at every service: money, places, instants."""

import re
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

INSTANT_MIN = datetime(1970, 1, 1, tzinfo=UTC)
INSTANT_MAX = datetime(2200, 1, 1, tzinfo=UTC)
FUTURE_MAX = timedelta(minutes=5)
"""How far a client's clock may be ahead of ours."""
VERSION_MAX = 2**31 - 1


DATE_FORM = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T")
MONEY_FORM = re.compile(r"[0-9]{1,10}(\.[0-9]{1,2})?")


def money_text(amount: object) -> object:
    """A JSON number is a binary float to most clients, which cannot hold cents exactly."""
    if not isinstance(amount, str) or not MONEY_FORM.fullmatch(amount):
        raise ValueError("is a string with at most two decimals, such as '5388.88'")
    return amount


def instant_text(instant: object) -> object:
    """A number would be taken for seconds, or for milliseconds if it is large."""
    if not isinstance(instant, str) or not DATE_FORM.match(instant):
        raise ValueError("is a string such as '2016-11-11T00:00:00Z'")
    return instant


def in_bounds(instant: datetime) -> datetime:
    """Beyond these, an instant in UTC or an hour after it may be no date at all."""
    if not INSTANT_MIN <= instant <= INSTANT_MAX:
        raise ValueError(f"is not between {INSTANT_MIN:%Y} and {INSTANT_MAX:%Y}")
    return instant.astimezone(UTC)


def two_decimals(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"))


def not_in_the_future(instant: datetime) -> datetime:
    if instant > datetime.now(UTC) + FUTURE_MAX:
        raise ValueError(f"is more than {FUTURE_MAX.seconds // 60} minutes in the future")
    return instant


Money = Annotated[
    Decimal,
    BeforeValidator(money_text),
    AfterValidator(two_decimals),
    WithJsonSchema({"type": "string", "pattern": f"^{MONEY_FORM.pattern}$"}),
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
Instant = Annotated[AwareDatetime, BeforeValidator(instant_text), AfterValidator(in_bounds)]
PastInstant = Annotated[Instant, AfterValidator(not_in_the_future)]
Version = Annotated[int, Field(ge=0, le=VERSION_MAX)]
"""The version of a stream; 0 before its first event."""
