"""What schemathesis cannot read from the documents; it loads this module itself, see fuzzing.py."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import schemathesis
from hypothesis import strategies as st
from schemathesis import Case, CheckContext, Response
from schemathesis.openapi.checks import RejectedPositiveData

from shared.web.field_types import PLACE_CHARACTERS_MAX, to_place_name

MALFORMED = frozenset(
    {
        "bad-request",
        "invalid-request",
        "malformed-idempotency-key",
        "malformed-if-match",
        "malformed-if-none-match",
        "unsupported-media-type",
    }
)
"""Codes that concern only the syntax of a request, whatever the state is."""

HOUR = timedelta(hours=1)
FIRST = datetime(1970, 1, 2)  # noqa: DTZ001 - the strategies want naive bounds
LAST = datetime(2025, 1, 1)  # noqa: DTZ001

# By default schemathesis generates only letters and digits in headers.
tags = st.integers(0, 10).map(lambda version: f'"{version}"') | st.sampled_from(['"x,y"', 'W/"1"'])
tag_lists = st.lists(tags, max_size=3).map(", ".join)
schemathesis.openapi.format("entity-tags", tag_lists | st.just("*"))

past_instants = st.datetimes(FIRST, LAST, timezones=st.just(UTC))
past_hours = past_instants.map(lambda instant: instant.replace(minute=0, second=0, microsecond=0))

# JSON Schema has no word for "not in the future", and `date-time` has years of 0001 to 9999.
schemathesis.openapi.format("date-time", (past_instants | past_hours).map(datetime.isoformat))

# Nor has it one for the beginning of an hour.
offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
hours = st.builds(lambda hour, offset: hour.astimezone(offset).isoformat(), past_hours, offsets)
schemathesis.openapi.format("hour", hours)

# JSON Schema has no word for the length of the capital letters of a text.
short_places = st.text(min_size=1, max_size=PLACE_CHARACTERS_MAX).filter(
    lambda place: len(to_place_name(place)) <= PLACE_CHARACTERS_MAX
)
schemathesis.openapi.format("place", short_places)


@schemathesis.check
def only_the_business_refuses(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    """A request that matches the documented schema is never called malformed.

    `positive_data_acceptance` sees statuses alone, and 422 is a business answer as well (an order
    that is worth too much, a key that was used for another request). The code distinguishes them.
    """
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code < 400:
        return
    if has_float(case.body):  # 2.0 is an integer in JSON Schema, which cannot demand digits
        return
    code = response.json().get("code")
    if code in MALFORMED:
        raise RejectedPositiveData(
            operation=case.operation.label,
            message=f"A request that matches the documented schema was refused as {code}",
            status_code=response.status_code,
            allowed_statuses=[],
        )


def has_float(body: object) -> bool:
    match body:
        case dict():
            return any(has_float(value) for value in body.values())
        case list():
            return any(has_float(value) for value in body)
    return isinstance(body, float)
