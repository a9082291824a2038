"""Whether a type of a field accepts what its JSON Schema says, on texts that are nearly right."""

from typing import Any

import jsonschema_rs
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

NEIGHBOURS = "0123456789abcfTtZz:.+-_ {}\n\t\x00\x85\u2003\u3000\u0661ß"
"""Characters that libraries take for others, or leave out."""


@st.composite
def near(draw: st.DrawFn, text: str) -> str:
    """A text that is some characters away from another one."""
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        kept = at + draw(st.integers(0, 2))
        text = text[:at] + draw(st.text(NEIGHBOURS, max_size=2)) + text[kept:]
    return text


def accepts(form: Any, value: object) -> bool:
    try:
        TypeAdapter(form).validate_python(value)
    except ValidationError:
        return False
    return True


def says(form: Any, value: object) -> bool:
    schema = TypeAdapter(form).json_schema()
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True).is_valid(value)


def values_near(text: str) -> st.SearchStrategy[object]:
    return near(text) | st.text(max_size=40) | st.integers() | st.floats() | st.none()
