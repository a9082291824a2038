"""The types of fields in requests, the same in every service: money, places, instants.

The JSON Schema of each accepts exactly what the type accepts. Patterns are those of ECMA 262,
Rust and Python alike.
"""

import re
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    StringConstraints,
    WithJsonSchema,
)

from shared.eventsourcing.timeline import round_down
from shared.messaging.bounds import INSTANT_MAX, INSTANT_MIN, MONEY_FORM, VERSION_MAX, YEAR_FORM

FUTURE_MAX = timedelta(minutes=5)
"""Maximum time by which a client's clock can be ahead of ours."""
PLACE_CHARACTERS_MAX = 32
LABEL_CHARACTERS_MAX = 200

MONEY_CHARACTERS_MAX = 13
AMOUNT_FORM = r"[0-9]+\.[0-9]{2}"

DATE_FORM = rf"{YEAR_FORM}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
OFFSET_FORM = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
IN_YEARS = f"{INSTANT_MIN.year} to {INSTANT_MAX.year}, in UTC"
INSTANT_FORM = (
    rf"{DATE_FORM}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{{1,9}})?{OFFSET_FORM}"
)

HOUR_FORM = rf"{DATE_FORM}T([01][0-9]|2[0-3]):[0-5][0-9]:00(\.0{{1,9}})?{OFFSET_FORM}"
"""Its minutes are those of the offset from UTC: there are offsets of half and of quarter hours."""

DIGITS_FORM = r"[0-9]{1,19}"
NUMBER_FORM = r"(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
"""A number in JSON that is not negative."""

ID_FORM = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

AN_ID = "01936f2a-7b00-7000-8000-000000000001"
AN_INSTANT = "2016-11-11T00:00:00Z"
"""It is the beginning of an hour, too."""

CONTROLS = r"\x00-\x1f\x7f-\x9f"
BLANKS = r" \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
VISIBLE = f"^[^{CONTROLS}]*[^{CONTROLS}{BLANKS}][^{CONTROLS}]*$"
"""Not only blanks, which are removed at both ends. PostgreSQL's text cannot hold U+0000; no other
control character is useful in a name."""


def require_pattern(form: str, example: str) -> Callable[[object], object]:
    """A validator that requires a string of this pattern, before any library parses it.

    JSON numbers are binary floats in most clients, which hold no exact cents, and are parsed as
    seconds or milliseconds; libraries accept more spellings than a document can list.
    """
    pattern = re.compile(form)

    def check(value: object) -> object:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError(f"must be a string such as '{example}'")
        return value

    return check


def to_two_decimals(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"))


def to_utc(instant: datetime) -> datetime:
    return instant.astimezone(UTC)


def reject_out_of_bounds(instant: datetime) -> datetime:
    """In UTC, where the first and the last day of a form's years can be in another year."""
    if not INSTANT_MIN <= instant <= INSTANT_MAX:
        raise ValueError(f"must be in the years {IN_YEARS}")
    return instant


def reject_future(instant: datetime) -> datetime:
    if instant > datetime.now(UTC) + FUTURE_MAX:
        raise ValueError(f"must not be more than {FUTURE_MAX.seconds // 60} minutes in the future")
    return instant


def reject_part_of_hour(instant: datetime) -> datetime:
    if instant.minute:
        raise ValueError("must be the beginning of an hour in UTC")
    return instant


def get_current_instant() -> datetime:
    """Now, as a `PastInstant` is: for a request that states no time."""
    return round_down(datetime.now(UTC))


def to_place_name(text: str) -> str:
    """A place as it is stored, and compared with others; that of a stored place is the same.

    Capital letters can be composed in another way than small ones, so both are composed (NFC).
    """
    capitals = unicodedata.normalize("NFC", text.strip()).upper()
    return unicodedata.normalize("NFC", capitals)


def reject_long_place(name: str) -> str:
    """Capital letters can be more than small ones: that of ß is SS."""
    if len(name) > PLACE_CHARACTERS_MAX:
        raise ValueError(f"must have at most {PLACE_CHARACTERS_MAX} capital letters")
    return name


def create_instant_schema(form: str, description: str, name: str = "date-time") -> WithJsonSchema:
    return WithJsonSchema(
        {
            "type": "string",
            "format": name,
            "pattern": f"^{form}$",
            "description": description,
            "examples": [AN_INSTANT],
        }
    )


Money = Annotated[
    Decimal,
    BeforeValidator(require_pattern(MONEY_FORM, "5388.88")),
    AfterValidator(to_two_decimals),
    WithJsonSchema(
        {"type": "string", "pattern": f"^{MONEY_FORM}$", "maxLength": MONEY_CHARACTERS_MAX}
    ),
]
Amount = Annotated[Decimal, WithJsonSchema({"type": "string", "pattern": f"^{AMOUNT_FORM}$"})]
"""Money in a response."""

PlaceName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=PLACE_CHARACTERS_MAX, pattern=VISIBLE),
    AfterValidator(to_place_name),
    AfterValidator(reject_long_place),
    Field(
        description="Stored in capital letters, composed (NFC), without surrounding blanks; also so"
        f" it has at most {PLACE_CHARACTERS_MAX} characters.",
        json_schema_extra={"format": "place"},
    ),
]
Label = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LABEL_CHARACTERS_MAX, pattern=VISIBLE),
    AfterValidator(str.strip),
    Field(description="Stored without surrounding blanks."),
]
Id = Annotated[
    UUID,
    BeforeValidator(require_pattern(ID_FORM, AN_ID)),
    WithJsonSchema({"type": "string", "format": "uuid", "examples": [AN_ID]}),
]
Instant = Annotated[
    AwareDatetime,
    BeforeValidator(require_pattern(INSTANT_FORM, AN_INSTANT)),
    AfterValidator(to_utc),
    AfterValidator(reject_out_of_bounds),
    create_instant_schema(INSTANT_FORM, f"In the years {IN_YEARS}."),
]
PastInstant = Annotated[
    Instant,
    AfterValidator(reject_future),
    AfterValidator(round_down),
    create_instant_schema(
        INSTANT_FORM,
        f"From {INSTANT_MIN.year} on, in UTC; at most {FUTURE_MAX.seconds // 60} minutes ahead of"
        " the service's clock. Rounded down to the millisecond.",
    ),
]
"""When a fact of a request holds from, or happened."""
Hour = Annotated[
    Instant,
    BeforeValidator(require_pattern(HOUR_FORM, AN_INSTANT)),
    AfterValidator(reject_part_of_hour),
    create_instant_schema(
        HOUR_FORM,
        f"The beginning of an hour in UTC, with any offset, in the years {IN_YEARS}.",
        "hour",
    ),
]
Integer = Annotated[
    int, Field(strict=True, description="In digits, without a decimal point or an exponent.")
]
"""A whole number in JSON."""
DIGITS = BeforeValidator(require_pattern(DIGITS_FORM, "50"))
"""Of a whole number in a query, behind its bounds: those in front of it are not documented."""
NUMBER = BeforeValidator(require_pattern(NUMBER_FORM, "2.5"))
"""The same of a number that is not negative."""
Version = Annotated[int, Field(ge=0, le=VERSION_MAX), DIGITS]
"""The version of a stream in a query; 0 before its first event."""
