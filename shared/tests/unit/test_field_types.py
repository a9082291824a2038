"""Field types accept exactly what their JSON Schema accepts, which is in the OpenAPI document."""

from typing import Annotated, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AwareDatetime, StringConstraints

from shared.web.field_types import Id, Instant, Label, Money, PastInstant, PlaceName
from test_support.field_types import accepts, says, values_near

FORMS = {
    "money": (Money, "5388.88"),
    "label": (Label, " iphone 7 "),
    "place": (PlaceName, "bj"),
    "id": (Id, "01936f2a-7b00-7000-8000-000000000001"),
    "instant": (Instant, "2016-02-28T23:59:59.999+08:00"),
    "past instant": (PastInstant, "2016-11-11T00:00:00Z"),
}


# JSON Schema has no keyword for "not in the future"; the description has it.
@pytest.mark.parametrize("name", sorted(FORMS.keys() - {"past instant"}))
@given(data=st.data())
def test_a_type_accepts_what_its_schema_accepts(name: str, data: st.DataObject) -> None:
    form, text = FORMS[name]
    value = data.draw(values_near(text))

    assert accepts(form, value) == says(form, value)


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
