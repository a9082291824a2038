"""What all pages have in common."""

import pytest

from shared.web.pages import POLICY, create_headers, format_time_span


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (86_400, "1 d")]
)
def test_a_time_span_is_shown_in_its_largest_unit(seconds: int, words: str) -> None:
    assert format_time_span(seconds) == words


def test_a_page_adds_to_the_policy_or_replaces_a_directive() -> None:
    plain, changed = create_headers({}), create_headers({"form-action": "'self'", "a": "'b'"})

    directives = changed["Content-Security-Policy"].split("; ")
    assert plain["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
    assert len(directives) == len(POLICY) + 1
    assert {"form-action 'self'", "a 'b'"} <= set(directives)
    assert "form-action 'none'" not in directives
