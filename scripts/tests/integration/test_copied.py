"""`copier copy` and `copier update` with this checkout as the template, as people would do it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.answers import ANSWERS
from scripts.changes import CHECKOUT, list_tracked, read_texts
from scripts.copying import TEMPLATE
from scripts.parts.declared import load_parts
from scripts.rename import KEPT
from test_support.checkout_copy import Copy, copied_checkout
from test_support.made_copies import COPIER, OTHERS, made_copy, run_copier
from test_support.other_name import LONGEST, OLD, SHORTEST

GONE, GOES = (*OTHERS, "", "")[:2]
"""Parts that the copy is without: one from the start, the other later."""
pytestmark = pytest.mark.skipif(not GOES, reason="there are no two parts")
RULES = "users-svc/src/users_svc/membership.py"


@pytest.fixture
def template() -> Iterator[Copy]:
    """This checkout as people find it: a repository with a release."""
    with copied_checkout() as copy:
        copy.git("tag", "v0.1.0")
        yield copy


@pytest.fixture
def mine(template: Copy) -> Iterator[Copy]:
    """A copy of the release, committed."""
    with made_copy(template, "v0.1.0", name=LONGEST, without=[GONE]) as copy:
        yield copy


def own_paths(copy: Copy, *names: str) -> list[Path]:
    parts = load_parts(CHECKOUT)
    return [copy.root / path for name in names for path in parts[name].paths if "*" not in path]


def test_a_copy_has_its_name_and_no_part_that_it_is_without(template: Copy, mine: Copy) -> None:
    texts = read_texts(mine.root, list_tracked(mine.root))
    assert {path for path, text in texts.items() if OLD in (path + text).lower()} <= KEPT
    assert json.loads(texts[ANSWERS]) == {
        "_commit": "v0.1.0",
        "_src_path": str(template.root),
        "without": [GONE],
        "name": LONGEST,
    }
    assert not [path for path in own_paths(mine, GONE) if path.exists()]
    assert not {TEMPLATE, GONE} & load_parts(mine.root).keys()
    assert (mine.root / ".ci/run").stat().st_mode & 0o111

    mine.printed("make", "lint", "imports", "contracts-check")
    mine.demand_current()


@pytest.mark.verify(part="copies")
def test_a_folder_with_other_files_is_refused(template: Copy, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")

    refused = template.run(
        *(*COPIER, "copy", "--trust", "--defaults"),
        *("--data", f"name={LONGEST}", str(template.root), str(tmp_path)),
    )

    assert refused.returncode != 0
    assert f"{OLD}: {tmp_path} is not empty: choose a new folder\n" in refused.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.verify(part="copies")
def test_an_update_brings_what_the_template_changed_and_keeps_what_is_ones_own(
    template: Copy, mine: Copy
) -> None:
    """A conflict is only where both changed the same lines."""
    change_mine(mine)
    change_template(template)

    renamed = mine.run(*COPIER, "update", "--trust", "--defaults", "--data", f"name={SHORTEST}")
    assert f"first make rename name={SHORTEST}, and commit it" in renamed.stdout
    assert mine.git("status", "--porcelain") == ""

    run_copier(mine, "update")

    assert sorted(mine.git("diff", "--name-only", "--diff-filter=U").split()) == ["SECURITY.md"]
    readme = (mine.root / "README.md").read_text()
    assert "\nNews.\n" in readme
    assert readme.endswith("\nOur own words.\n")
    assert (mine.root / RULES).read_text() == f'"""Our own rules, of {OLD}."""\n'
    news = mine.root / "scripts/news.py"
    assert news.read_text() == f'"""News of {LONGEST.capitalize()}."""\n'
    assert not (mine.root / "docs/threat-model.md").exists()
    assert not [path for path in own_paths(mine, GONE, GOES) if path.exists()]
    answers = json.loads((mine.root / ANSWERS).read_text())
    assert answers["_commit"] == "v0.2.0"
    assert {*answers["without"]} == {GONE, GOES}

    mine.git("checkout", "--ours", "SECURITY.md")
    mine.commit("the next release")
    mine.printed("make", "lint", "types", "imports", "contracts-check")
    mine.demo()


def change_mine(mine: Copy) -> None:
    """What its owner changes: a document, a line that the template changes, too, own rules, and
    a part less.
    """
    readme, security = mine.root / "README.md", mine.root / "SECURITY.md"
    readme.write_text(readme.read_text() + "\nOur own words.\n")
    security.write_text("# Ours\n" + security.read_text().partition("\n")[2])
    (mine.root / RULES).write_text(f'"""Our own rules, of {OLD}."""\n')
    mine.commit("ours")
    mine.printed("make", "without", f"part={GOES}")
    mine.commit(f"without {GOES}")


def change_template(template: Copy) -> None:
    """The next release: a changed document, a new file, a file less, changes of both parts."""
    readme, security = template.root / "README.md", template.root / "SECURITY.md"
    title, _, rest = readme.read_text().partition("\n")
    readme.write_text(f"{title}\n\nNews.\n{rest}")
    security.write_text("# Theirs\n" + security.read_text().partition("\n")[2])
    news = template.root / "scripts/news.py"
    news.write_text(f'"""News of {OLD.capitalize()}."""\n')
    (template.root / "docs/threat-model.md").unlink()
    for path in own_paths(template, GONE, GOES):
        if path.suffix == ".md":
            path.write_text(path.read_text() + "\nMore.\n")
    template.commit("news")
    template.git("tag", "v0.2.0")
