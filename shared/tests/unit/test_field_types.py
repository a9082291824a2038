"""Field types accept exactly what their JSON Schema accepts, which is in the OpenAPI document."""

import re
import unicodedata
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AwareDatetime, StringConstraints, TypeAdapter

from shared.web.field_types import (
    PLACE_CHARACTERS_MAX,
    Hour,
    Id,
    Instant,
    Label,
    Money,
    PastInstant,
    PlaceName,
    get_current_instant,
    to_place_name,
)
from test_support.field_types import accepts, says, values_near

FORMS = {
    "money": (Money, "5388.88"),
    "label": (Label, " iphone 7 "),
    "place": (PlaceName, "bj"),
    "id": (Id, "01936f2a-7b00-7000-8000-000000000001"),
    "instant": (Instant, "2016-02-28T23:59:59.999+08:00"),
    "past instant": (PastInstant, "2016-11-11T00:00:00Z"),
    "hour": (Hour, "2016-11-11T00:00:00Z"),
}


# JSON Schema has no keyword for "not in the future", nor for the length of capital letters or the
# beginning of an hour; the descriptions have these.
@pytest.mark.parametrize("name", sorted(FORMS.keys() - {"past instant", "place", "hour"}))
@given(data=st.data())
def test_a_type_accepts_what_its_schema_accepts(name: str, data: st.DataObject) -> None:
    form, text = FORMS[name]
    value = data.draw(values_near(text))

    assert accepts(form, value) == says(form, value)


@given(values_near("bj") | st.text("aß\u0301\u0390", max_size=40))
def test_a_place_is_accepted_that_is_short_enough_as_it_is_stored(value: object) -> None:
    is_short = isinstance(value, str) and len(to_place_name(value)) <= PLACE_CHARACTERS_MAX

    assert accepts(PlaceName, value) == (says(PlaceName, value) and is_short)


@pytest.mark.parametrize("place", ["ß" * 16, "ǰ" * 16, "a" * 32, "\u0390" * 16])
def test_a_place_is_accepted_again_as_it_is_stored(place: str) -> None:
    stored = TypeAdapter(PlaceName).validate_python(place)

    assert TypeAdapter(PlaceName).validate_python(stored) == stored


def test_a_place_that_grows_beyond_the_maximum_is_refused() -> None:
    assert not accepts(PlaceName, "ß" * 17)
    assert not accepts(PlaceName, "ß" * 32)


@given(st.text(max_size=32))
def test_equal_texts_are_one_place_however_they_are_composed(text: str) -> None:
    names = {to_place_name(unicodedata.normalize(form, text)) for form in ("NFC", "NFD")}

    assert len(names) == 1
    assert {to_place_name(name) for name in names} == names


@pytest.mark.parametrize("stored", ["BJ", "STRASSE", "MÁLAGA", "ΆΓΙΟΣ", "上海"])
def test_a_stored_place_is_still_the_same_place(stored: str) -> None:
    """Capital letters were stored before; `casefold` would be another form."""
    assert to_place_name(stored) == to_place_name(stored.lower()) == stored


@pytest.mark.parametrize("more", ["", "9", "999", "999999"])
def test_the_time_of_a_fact_is_rounded_down_to_the_millisecond(more: str) -> None:
    instant = TypeAdapter(PastInstant).validate_python(f"2016-11-11T00:59:59.999{more}Z")

    assert instant == datetime(2016, 11, 11, 0, 59, 59, 999_000, tzinfo=UTC)
    assert get_current_instant().microsecond % 1_000 == 0


@given(values_near("2016-11-11T05:30:00+05:30"))
def test_an_hour_is_the_beginning_of_one(value: object) -> None:
    is_whole = accepts(Instant, value) and not TypeAdapter(Instant).validate_python(value).minute

    assert accepts(Hour, value) == (says(Hour, value) and is_whole)


@pytest.mark.parametrize("text", ["2016-11-11T00:00:01Z", "2016-11-11T00:00:00.000000001Z"])
def test_an_hour_has_no_part_of_a_second(text: str) -> None:
    assert not accepts(Hour, text)


@given(st.timezones(), st.datetimes(datetime(1970, 1, 2), datetime(2099, 1, 1)))  # noqa: DTZ001
def test_an_hour_is_accepted_with_each_offset_that_a_place_has(zone: Any, at: datetime) -> None:
    hour = at.replace(minute=0, second=0, microsecond=0, tzinfo=UTC)
    here = hour.astimezone(zone)

    if re.search(r"[+-]..:..$", here.isoformat()):  # some offsets before 1972 have seconds
        assert TypeAdapter(Hour).validate_python(here.isoformat()) == hour


@pytest.mark.parametrize("name", FORMS)
def test_the_example_is_accepted(name: str) -> None:
    form, text = FORMS[name]

    assert accepts(form, text)
    assert says(form, text)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (AwareDatetime, "2016-11-11 00:00Z"),
        (UUID, "01936f2a7b0070008000000000000001"),
        (
            Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^[^\x00-\x1f]+$")],
            "\n1",
        ),
    ],
    ids=["instant", "id", "label"],
)
def test_without_our_validators_the_library_accepts_more_than_its_schema(
    form: Any, text: str
) -> None:
    assert accepts(form, text)
    assert not says(form, text)
