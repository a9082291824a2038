"""An hour accepts what its JSON Schema says, neither more nor less."""

from hypothesis import given
from hypothesis import strategies as st

from analytics_spark.serving.field_types import Hour
from test_support.field_types import accepts, says, values_near

EXAMPLE = "2016-11-11T00:00:00Z"


@given(data=st.data())
def test_an_hour_accepts_what_its_schema_says(data: st.DataObject) -> None:
    value = data.draw(values_near(EXAMPLE))

    assert accepts(Hour, value) == says(Hour, value)


def test_an_hour_is_the_beginning_of_one() -> None:
    assert accepts(Hour, EXAMPLE)
    assert says(Hour, EXAMPLE)
    assert not accepts(Hour, "2016-11-11T00:00:01Z")
