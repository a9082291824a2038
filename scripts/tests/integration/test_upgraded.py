"""Copies of older releases, as teams have them, come to this one by `make upgrade`."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from scripts.changes import CHECKOUT, run_git
from test_support.checkout_copy import Copy, copied_checkout
from test_support.made_copies import OTHERS, RELEASES, made_copy, run_copier

LONG, SHORT = "q" + "x" * 14, "q" + "x"
"""Not those that the tests of a copy try."""
NEXT = "v9.0.0"
"""The tag of this checkout here."""
EQUAL = re.compile(r"^(\w+): equal, (\d+) rows", re.MULTILINE)

pytestmark = pytest.mark.verify(part="copies")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A copy of a release, and what its team made of it."""

    title: str
    name: str
    without: list[str]
    grow: Callable[[Copy], object] | None = None


KEPT = [
    Kept(title="renamed and trimmed", name=LONG, without=OTHERS[:1]),
    Kept(
        title="with a service more",
        name=SHORT,
        without=[],
        grow=lambda copy: copy.printed("make", "new-service", "name=parcels"),
    ),
    Kept(title="the smallest", name=SHORT, without=OTHERS),
]


@pytest.fixture(scope="module")
def template() -> Iterator[Copy]:
    """This checkout as a repository with its releases, and with itself as the next one."""
    missing = [
        tag
        for tag, commit in RELEASES.items()
        if run_git(CHECKOUT, "cat-file", "-e", commit).returncode
    ]
    if missing:
        pytest.skip(f"this clone has no {missing[0]}: git fetch --unshallow, then again")
    with copied_checkout() as copy:
        copy.git("fetch", "-q", str(CHECKOUT), *RELEASES.values())
        for tag, commit in RELEASES.items():
            copy.git("tag", tag, commit)
        copy.git("tag", NEXT)
        yield copy


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.title)
def test_a_kept_copy_is_green_after_it_and_its_data_are_there(template: Copy, kept: Kept) -> None:
    with made_copy(
        template, "v0.1.0", name=kept.name, without=kept.without, is_compiled=True
    ) as copy:
        try:
            if kept.grow:
                kept.grow(copy)
                copy.commit("ours")
            copy.printed("make", "demo")
            rows = count_rows(copy)
            copy.printed("make", "down")

            run_copier(copy, "update", f"--vcs-ref={NEXT}")  # v0.1.0 has no other way
            assert "done. Next:" in copy.printed("make", "upgrade")

            assert copy.git("diff", "--name-only", "--diff-filter=U") == ""
            copy.commit("the next release")
            copy.demand_current()
            copy.printed("make", "check")
            copy.printed("make", "up")
            assert count_rows(copy) == rows
            copy.printed("make", "audit", "check-cells", "trace")
        finally:
            copy.run("make", "clean")


def count_rows(copy: Copy) -> dict[str, str]:
    """The number of rows of each read model, all of which follow from the events."""
    rows = dict(EQUAL.findall(copy.printed("make", "rebuild-check")))
    assert rows
    return rows
