"""`copier copy` and `copier update` with this checkout as the template, as people would do it."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.answers import ANSWERS
from scripts.changes import CHECKOUT, LOCK, list_tracked, read_texts
from scripts.copying import TEMPLATE
from scripts.parts.declared import load_parts
from scripts.rename import KEPT
from test_support.checkout_copy import Copy, copied_checkout
from test_support.made_copies import COPIER, OTHERS, made_copy
from test_support.other_name import LONGEST, OLD, SHORTEST

GONE, GOES = (*OTHERS, "", "")[:2]
"""Parts that the copy is without: one from the start, the other later."""
pytestmark = pytest.mark.skipif(not GOES, reason="there are no two parts")
RULES = "users-svc/src/users_svc/membership.py"
PACKAGES = "users-svc/pyproject.toml"
OURS, THEIRS = "httpx", "jsonschema"
OWN_CODE = "scripts/ours.py"
USES_DERIVED = """\
\"\"\"Ours.\"\"\"

from shared.runtime.identifiers import derive_id

OURS = derive_id
"""
CODEMOD = """

class IdIsNamed(cst.CSTTransformer):
    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        is_old = original_node.value == "derive_id"
        return updated_node.with_changes(value="name_id") if is_old else updated_node


CODEMODS = (
    Codemod(module="shared.runtime.identifiers", name="derive_id", transform=IdIsNamed),
)
"""


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
def test_an_upgrade_brings_what_the_template_changed_and_keeps_what_is_ones_own(
    template: Copy, mine: Copy
) -> None:
    """A conflict is only where both changed the same lines."""
    change_mine(mine)
    change_template(template)

    renamed = mine.run(*COPIER, "update", "--trust", "--defaults", "--data", f"name={SHORTEST}")
    assert f"first make rename name={SHORTEST}, and commit it" in renamed.stdout
    assert mine.git("status", "--porcelain") == ""

    stopped = mine.run("make", "upgrade", "to=v0.2.0")
    assert stopped.returncode != 0
    assert f"both changed the same lines of {PACKAGES}: resolve" in stopped.stdout
    assert list_of(stopped.stdout, "to do, ") >= {
        "docs/threat-model.md went, and you had changed it"
    }
    keep_both(mine.root / PACKAGES)

    stopped = mine.run("make", "upgrade", "to=v0.2.0")
    assert stopped.returncode != 0
    assert list_of(stopped.stdout, "left: ") == {"SECURITY.md"}
    assert list_of(stopped.stdout, "rewrote ") == {OWN_CODE}
    assert {OURS, THEIRS} <= list_dependencies(mine)
    assert (mine.root / OWN_CODE).read_text() == USES_DERIVED.replace("derive_id", "name_id")
    readme = (mine.root / "README.md").read_text()
    assert "\nNews.\n" in readme
    assert readme.endswith("\nOur own words.\n")
    assert (mine.root / RULES).read_text() == f'"""Our own rules, of {OLD}."""\n'
    news = mine.root / "scripts/news.py"
    assert news.read_text() == f'"""News of {LONGEST.capitalize()}."""\n'
    assert not [path for path in own_paths(mine, GONE, GOES) if path.exists()]
    answers = json.loads((mine.root / ANSWERS).read_text())
    assert answers["_commit"] == "v0.2.0"
    assert {*answers["without"]} == {GONE, GOES}

    mine.git("checkout", "--ours", "SECURITY.md")
    assert "done. Next:" in mine.printed("make", "upgrade")
    mine.commit("the next release")
    assert "done. Next:" in mine.printed("make", "upgrade", "to=v0.2.0")
    assert mine.git("status", "--porcelain") == ""
    mine.demo()


def keep_both(path: Path) -> None:
    """Resolve a conflict in a list."""
    path.write_text(
        re.sub(r"^(<<<<<<<|=======|>>>>>>>).*\n", "", path.read_text(), flags=re.MULTILINE)
    )


def list_dependencies(copy: Copy) -> set[str]:
    """The names of the packages that users-svc needs, as they are locked."""
    packages = tomllib.loads((copy.root / LOCK).read_text())["package"]
    [own] = [each for each in packages if each["name"] == "users-svc"]
    return {each["name"] for each in own["dependencies"]}


def add_dependency(copy: Copy, name: str) -> None:
    """Let users-svc need a package that others need already."""
    path = copy.root / PACKAGES
    path.write_text(path.read_text().replace('    "shared",', f'    "{name}",\n    "shared",'))
    lock = "run_steps(CHECKOUT, [lock_packages('locking')], print)"
    copy.python("-c", f"from scripts.changes import *; {lock}")
    assert name in list_dependencies(copy)


def list_of(printed: str, begin: str) -> set[str]:
    """What the lines are about that begin so, before a colon."""
    lines = [line.strip() for line in printed.splitlines()]
    return {line.removeprefix(begin).partition(":")[0] for line in lines if line.startswith(begin)}


def change_mine(mine: Copy) -> None:
    """What its owner changes: a document, lines that the template changes, a file that it drops,
    own rules, own code, a part less, and a package more.
    """
    for name in ("README.md", "docs/threat-model.md"):
        path = mine.root / name
        path.write_text(path.read_text() + "\nOur own words.\n")
    retitle(mine, "# Ours")
    (mine.root / RULES).write_text(f'"""Our own rules, of {OLD}."""\n')
    (mine.root / OWN_CODE).write_text(USES_DERIVED)
    mine.commit("ours")
    mine.printed("make", "without", f"part={GOES}")
    add_dependency(mine, OURS)
    mine.commit(f"without {GOES}, and with {OURS}")


def change_template(template: Copy) -> None:
    """The next release: a changed document, a new file, a file less, changes of both parts, a
    function with another name, and a package more.
    """
    readme = template.root / "README.md"
    title, _, rest = readme.read_text().partition("\n")
    readme.write_text(f"{title}\n\nNews.\n{rest}")
    retitle(template, "# Theirs")
    news = template.root / "scripts/news.py"
    news.write_text(f'"""News of {OLD.capitalize()}."""\n')
    (template.root / "docs/threat-model.md").unlink()
    for path in own_paths(template, GONE, GOES):
        if path.suffix == ".md":
            path.write_text(path.read_text() + "\nMore.\n")
    for file, text in read_texts(template.root, list_tracked(template.root)).items():
        if file.endswith(".py") and "derive_id" in text:
            (template.root / file).write_text(text.replace("derive_id", "name_id"))
    codemods = template.root / "scripts/upgrade/codemods.py"
    codemods.write_text(codemods.read_text() + CODEMOD)
    add_dependency(template, THEIRS)
    template.commit("news")
    template.git("tag", "v0.2.0")


def retitle(copy: Copy, title: str) -> None:
    security = copy.root / "SECURITY.md"
    security.write_text(f"{title}\n" + security.read_text().partition("\n")[2])
