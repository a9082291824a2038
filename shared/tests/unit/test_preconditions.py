"""Entity tags are compared as RFC 9110, section 13.1, says, whatever else a header holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.web.preconditions import UNTAGGED, read_preconditions
from shared.web.problems import HttpProblem

CURRENT = '"7"'

others = st.sampled_from(
    ['"8"', '"07"', '"abc"', '""', '"7,"', '","', '"é"', '"*"', '"7\'"', 'W/"8"']
)
blanks = st.sampled_from(["", " ", "\t", " , ", ",,"])


@st.composite
def lists(draw: st.DrawFn, *more: str) -> list[bytes]:
    """The lines of a header: some tags, with `more` among them, and blanks and commas around."""
    tags = draw(st.permutations([*draw(st.lists(others, max_size=4)), *more]))
    lines, line = [], draw(blanks)
    for tag in tags:
        line += draw(blanks) + tag + draw(blanks)
        if draw(st.booleans()):
            lines.append(line.encode("latin-1"))
            line = ""
        else:
            line += ","
    return [*lines, line.encode("latin-1")]


def holds(name: bytes, lines: list[bytes], tag: str | None) -> bool:
    return read_preconditions([(name, line) for line in lines]).hold_for(tag)


@given(lists())
def test_a_list_without_the_tag_does_not_match(lines: list[bytes]) -> None:
    assert not holds(b"if-match", lines, CURRENT)
    assert holds(b"if-none-match", lines, CURRENT)


@given(lists(CURRENT))
def test_a_list_with_the_tag_matches(lines: list[bytes]) -> None:
    assert holds(b"if-match", lines, CURRENT)
    assert not holds(b"if-none-match", lines, CURRENT)


@given(lists(f"W/{CURRENT}"))
def test_a_weak_tag_matches_only_where_content_may_be_left_out(lines: list[bytes]) -> None:
    assert not holds(b"if-match", lines, CURRENT)
    assert not holds(b"if-none-match", lines, CURRENT)


@pytest.mark.parametrize("tag", [CURRENT, UNTAGGED])
def test_any_tag_is_that_of_a_resource_which_exists(tag: str) -> None:
    assert holds(b"if-match", [b" * "], tag)
    assert not holds(b"if-none-match", [b"*"], tag)
    assert not holds(b"if-match", [b"*"], None)
    assert holds(b"if-none-match", [b"*"], None)


@given(lists(CURRENT))
def test_a_resource_without_a_tag_matches_none(lines: list[bytes]) -> None:
    for tag in (UNTAGGED, None):
        assert not holds(b"if-match", lines, tag)
        assert holds(b"if-none-match", lines, tag)


@pytest.mark.parametrize("name", ["If-Match", "If-None-Match"])
@pytest.mark.parametrize(
    "lines",
    [
        [b"7"],
        [b"'7'"],
        [b'"7'],
        [b'7"'],
        [b'"7" "8"'],
        [b'"7"; "8"'],
        [b'w/"7"'],
        [b'W/ "7"'],
        [b'W/"7'],
        [b'"7 8"'],
        [b'"\x7f"'],
        [b'"7"', b"*"],
        [b"*", b"*"],
        [b"**"],
    ],
)
def test_a_malformed_header_is_refused(name: str, lines: list[bytes]) -> None:
    with pytest.raises(HttpProblem) as refused:
        read_preconditions([(name.lower().encode(), line) for line in lines])

    assert (refused.value.status, refused.value.code) == (400, f"malformed-{name.lower()}")


def test_a_long_header_is_read_in_the_time_of_its_length() -> None:
    for text in (b" " * 16_000, b'"' + b"\t," * 8_000, b'W/"' * 5_000, b'"7",' * 4_000 + b"7"):
        with pytest.raises(HttpProblem):
            read_preconditions([(b"if-match", text + b"!")])
