"""`make without` in copies of this checkout: what is left is checked as this one is."""

from collections.abc import Iterator

import pytest

from local_stack.progress import tell
from scripts.changes import CHECKOUT, list_tracked
from scripts.parts.declared import FILE, load_parts
from scripts.parts.removal import find_mentions, plan_cut, read_written
from test_support.checkout_copy import Copy, copied_checkout
from test_support.left_out import PARTS, SELECTIONS

pytestmark = pytest.mark.skipif(not PARTS, reason="no part is left")


@pytest.fixture
def copy() -> Iterator[Copy]:
    with copied_checkout() as copied:
        yield copied


def take_out(copy: Copy, names: str) -> None:
    """Take parts out of the copy, and commit what is left."""
    cut = plan_cut(CHECKOUT, names.split(","))
    printed = copy.printed("make", "without", f"part={names}")

    assert f"done, without {cut.names}" in printed
    assert not {*names.split(",")} & load_parts(copy.root).keys()
    copy.commit(f"without {names}")
    texts = read_written(copy.root, list_tracked(copy.root))
    mentions = [each for file in texts for each in find_mentions(file, texts[file], cut.pattern)]
    assert [str(mention) for mention in mentions if mention.path != FILE] == []


@pytest.mark.verify(part="copies")
def test_without_all_parts_it_is_linted_typed_and_keeps_its_contracts(copy: Copy) -> None:
    take_out(copy, ",".join(PARTS))

    copy.printed("make", "lint", "types", "imports", "contracts-check")
    copy.printed("make", "docs")  # no link leads to what is gone
    copy.demand_current()


@pytest.mark.verify(part="copies")
@pytest.mark.parametrize("names", SELECTIONS)
def test_what_is_left_passes_its_checks_and_counts_the_sample(copy: Copy, names: str) -> None:
    take_out(copy, names)

    copy.printed("make", "check")
    copy.demo()
    copy.demand_current()
    tell(f"without {names}: {count_lines(copy)} lines of Python are left")


def count_lines(copy: Copy) -> int:
    files = [copy.root / name for name in copy.git("ls-files", "*.py").split()]
    return sum(len(file.read_text().splitlines()) for file in files)


def test_a_command_that_fails_changes_nothing(copy: Copy) -> None:
    """The contracts cannot be written, when files have gone and packages are locked."""
    events = copy.root / "users-svc/src/users_svc/events.py"
    events.write_text(events.read_text() + '\nraise RuntimeError("broken")\n')
    copy.git("commit", "-qam", "broken")

    refused = copy.run("make", "without", f"part={SELECTIONS[0]}")

    assert refused.returncode == 2
    assert "writing the contracts failed (RuntimeError: broken)" in refused.stdout
    assert copy.git("status", "--porcelain") == ""
