"""`make rename` in a copy of this checkout: with another name it is checked as this one is."""

from collections.abc import Iterator

import pytest

from scripts.changes import CHECKOUT, list_tracked, read_texts
from scripts.rename import KEPT, read_name
from test_support.checkout_copy import Copy, copied_checkout

OLD = read_name(CHECKOUT)
NAME = "coffee" + "house"
"""Composed, so that no file has it: a name must not occur."""


@pytest.fixture
def renamed() -> Iterator[Copy]:
    with copied_checkout() as copy:
        assert f"done, it is {NAME}" in copy.printed("make", "rename", f"name={NAME}")
        copy.git("add", "-A")
        copy.git("commit", "-q", "-m", f"the name is {NAME}")
        yield copy


def test_the_name_is_in_all_that_is_generated(renamed: Copy) -> None:
    texts = read_texts(renamed.root, list_tracked(renamed.root))
    assert {path for path, text in texts.items() if OLD in (path + text).lower()} <= KEPT
    assert f'name = "{NAME}"\n' in texts["uv.lock"]

    renamed.printed("make", "lint", "imports", "contracts-check")
    renamed.printed("make", "generate")
    assert renamed.git("status", "--porcelain") == "", "what is generated is up to date"


@pytest.mark.verify(part="copies")
def test_with_another_name_it_passes_its_checks_and_counts_the_sample(renamed: Copy) -> None:
    renamed.printed("make", "check")
    try:
        assert "confirmed, 16166.64" in renamed.printed("make", "demo")
    finally:
        renamed.run("make", "clean")

    assert renamed.git("status", "--porcelain") == "", "what is generated is up to date"
