"""`make rename` in a copy of this checkout: with another name it is checked as this one is."""

from collections.abc import Iterator

import pytest

from scripts.changes import list_tracked, read_texts
from scripts.rename import KEPT
from test_support.checkout_copy import Copy, copied_checkout
from test_support.other_name import LONGEST, OLD


@pytest.fixture
def renamed() -> Iterator[Copy]:
    with copied_checkout() as copy:
        assert f"done, it is {LONGEST}" in copy.printed("make", "rename", f"name={LONGEST}")
        copy.commit(f"the name is {LONGEST}")
        yield copy


def test_the_name_is_in_all_that_is_generated(renamed: Copy) -> None:
    texts = read_texts(renamed.root, list_tracked(renamed.root))
    assert {path for path, text in texts.items() if OLD in (path + text).lower()} <= KEPT
    assert f'name = "{LONGEST}"\n' in texts["uv.lock"]

    renamed.printed("make", "lint", "imports", "contracts-check")
    renamed.demand_current()


@pytest.mark.verify(part="copies")
def test_with_another_name_it_passes_its_checks_and_counts_the_sample(renamed: Copy) -> None:
    renamed.printed("make", "check")
    renamed.demo()
    renamed.demand_current()
