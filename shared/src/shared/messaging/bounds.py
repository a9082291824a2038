"""The bounds of the values in public events, in one place for APIs, contracts and readers.

What an API accepts, no reader may refuse later, so each takes the bounds from here.
"""

from datetime import UTC, datetime
from decimal import Decimal

INSTANT_MIN = datetime(1970, 1, 1, tzinfo=UTC)
INSTANT_MAX = datetime(2099, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
"""Of the time of a fact. Between them, milliseconds since 1970 have no sign and fit into 42 bits,
and an hour after an instant, in any time zone, is still a date."""

YEAR_FORM = r"(19[7-9][0-9]|20[0-9]{2})"
"""The years from INSTANT_MIN to INSTANT_MAX."""

INSTANT_FORM = rf"{YEAR_FORM}(-[0-9]{{2}}){{2}}T[0-9]{{2}}(:[0-9]{{2}}){{2}}(\.[0-9]{{1,6}})?Z"
"""All texts from INSTANT_MIN to INSTANT_MAX, as pydantic writes them; and some that are no date."""

QUANTITY_MAX = 1_000_000
"""Of an item, in one line of an order."""

MONEY_MAX = Decimal("9999999999.99")
"""Of a price, a credit limit and an order. With QUANTITY_MAX the amount of a line, in cents, fits
into 64 bits; what is confirmed is bounded by a credit limit, so the sum of millions does too."""

MONEY_FORM = r"[0-9]{1,10}(\.[0-9]{1,2})?"
"""All texts of amounts from 0 to MONEY_MAX."""

VERSION_MAX = 2**31 - 1
"""Of a stream: PostgreSQL's largest integer."""

VERSION_FORM = "[0-9]{1,10}"
"""Of a number in a header: all texts up to VERSION_MAX, and some beyond."""
