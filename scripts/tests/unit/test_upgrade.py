"""An upgrade begins where nothing can be lost, goes on where it stopped, and lists what is left."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.answers import ANSWERS, write_answers
from scripts.changes import CHECKOUT, LOCK, ChangeError, run_git
from scripts.upgrade import __main__ as beginning
from scripts.upgrade import finish as finishing
from scripts.upgrade.__main__ import upgrade
from scripts.upgrade.changelog import FILE, TO_DO, list_sections, list_to_do
from scripts.upgrade.finish import CHECKS, finish, rewrite_code, run_checks
from scripts.upgrade.merge import (
    add_resolved,
    demand_whole,
    find_mark,
    list_gone,
    list_open,
    mark_as_begun,
    merge,
    settle_lock,
)
from test_support.repositories import IDENTITY, commit_all, git

OLD = 'from shared.projections.read_models import ReadModel\nX = ReadModel(table="x")\n'
HEADINGS = {
    *("### Added", "### Changed", "### Deprecated", "### Removed", "### Fixed", "### Security"),
    *("### Settings", "### Migrations", TO_DO),
}
PROMISES = "contracts/released.json"
NAMES = ("kept.md", "changed.md", "gone.md")
CHANGELOG = """\
# Changelog

## [Unreleased]

### Added

- A moon.

### To do in a copy

- Look up,
  at night.
- Name it.

### Removed

- The sun.

## [0.2.0] - 2026-11-28

### To do in a copy

- Pack.

## [0.1.0] - 2026-11-27

### To do in a copy

- Breathe.
"""


@pytest.fixture(params=["at the top", "in a folder"])
def copy(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of release v0.1.0, also as a folder of a larger repository, with a commit of its
    owner.
    """
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "config", "color.ui", "always")
    root = tmp_path if request.param == "at the top" else tmp_path / "shop"
    root.mkdir(exist_ok=True)
    write_answers(root, {"_commit": "v0.1.0", "name": "sky", "without": []})
    (root / FILE).parent.mkdir()
    (root / FILE).write_text(CHANGELOG)
    for name in (*NAMES, LOCK):
        (root / name).write_text(f"first of {name}\n")
    commit_all(root)
    (root / "changed.md").write_text("of the owner\n")
    commit_all(root)
    return root


def take_release(root: Path) -> None:
    """As copier does: other answers, not committed."""
    write_answers(root, {"_commit": "v0.2.0", "name": "sky", "without": []})


def conflict(root: Path, name: str) -> None:
    """Make a file unmerged, with the marks of copier."""
    git(root, "checkout", "-q", "-b", "theirs")
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text("of the release\n")
    commit_all(root)
    git(root, "checkout", "-q", "main")
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text("of the owner\n")
    commit_all(root)
    assert run_git(root, *IDENTITY, "merge", "theirs").returncode == 1
    (root / name).write_text(
        "<<<<<<< before updating\nof the owner\n=======\nof the release\n>>>>>>> after updating\n"
    )


def demand_refused(root: Path, to: str, message: str) -> None:
    with pytest.raises(ChangeError, match=message):
        upgrade(root, to)


def test_a_checkout_that_is_no_copy_is_refused(tmp_path: Path) -> None:
    demand_refused(tmp_path, "", f"no copy of a release: it has no {re.escape(ANSWERS)}")


def test_a_copy_without_a_commit_is_refused(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    take_release(tmp_path)

    demand_refused(tmp_path, "", "git add -A, git commit, then again")


def test_answers_without_a_release_are_refused(copy: Path) -> None:
    write_answers(copy, {"name": "sky", "without": []})
    demand_refused(copy, "", "has no `_commit`")

    commit_all(copy)
    take_release(copy)
    demand_refused(copy, "", "has no `_commit`")


def test_uncommitted_changes_are_refused(copy: Path) -> None:
    (copy / "kept.md").write_text("changed\n")

    demand_refused(copy, "v0.2.0", "uncommitted changes")


def test_another_release_than_the_one_that_was_brought_is_refused(copy: Path) -> None:
    take_release(copy)

    demand_refused(copy, "v0.3.0", "the upgrade to v0.2.0 is not committed")


# A merge that was interrupted


def test_files_that_are_not_whole_are_refused_until_git_brought_them_back(copy: Path) -> None:
    mark_as_begun(copy)
    (copy / "changed.md").write_text("of the release\n")

    demand_refused(copy, "", "was interrupted before your changes were back: git reset --hard")
    git(copy, "reset", "-q", "--hard")

    demand_whole(copy)
    assert not find_mark(copy).exists()


def test_files_that_are_not_whole_are_refused_also_if_they_are_committed(copy: Path) -> None:
    mark_as_begun(copy)
    (copy / "changed.md").write_text("of the release\n")
    commit_all(copy)

    demand_refused(copy, "", f"if you did that before, remove {find_mark(copy)}")


def test_a_folder_that_git_does_not_have_gets_no_mark(tmp_path: Path) -> None:
    mark_as_begun(tmp_path)

    assert [*tmp_path.iterdir()] == []


# Copier


def provide_uv(root: Path, script: str) -> None:
    uv = root / ".tools/bin/uv"
    uv.parent.mkdir(parents=True)
    uv.write_text(f"#!/bin/sh\n{script}\n")
    uv.chmod(0o755)


@pytest.mark.parametrize(("to", "given"), [("v0.2.0", "--vcs-ref=v0.2.0"), ("", "--defaults")])
def test_copier_is_asked_for_the_release(copy: Path, to: str, given: str) -> None:
    provide_uv(copy, 'for last; do :; done; echo "$last" >given')

    merge(copy, to)

    assert (copy / "given").read_text() == f"{given}\n"


def test_what_copier_refuses_is_one_line(copy: Path) -> None:
    provide_uv(copy, "exit 1")

    with pytest.raises(ChangeError, match="copier brought no release, for the reason above"):
        merge(copy, "v0.2.0")


# Conflicts


@pytest.mark.parametrize("name", ["rules.py", "pyproject.toml", "Makefile", PROMISES])
@pytest.mark.parametrize("is_added", [True, False])
def test_a_conflict_in_what_is_run_then_comes_first(
    copy: Path, name: str, is_added: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    conflict(copy, name)
    take_release(copy)
    (copy / "changed.md").unlink()
    if is_added:
        git(copy, "add", "-A")

    demand_refused(copy, "", f"both changed the same lines of {name}: resolve")

    printed = capsys.readouterr().out
    assert "to do, Unreleased: Name it." in printed
    assert re.search(r"to do, changed\.md went, .*: git show [0-9a-f]{12}:\./changed\.md", printed)


@pytest.mark.parametrize("is_added", [True, False])
def test_a_conflict_of_the_lock_is_no_ones(copy: Path, is_added: bool) -> None:
    conflict(copy, LOCK)
    if is_added:
        git(copy, "add", "-A")
    assert list_open(copy) == [LOCK]

    settle_lock(copy)

    side = "owner" if is_added else "release"
    assert (copy / LOCK).read_text() == f"of the {side}\n"
    assert list_open(copy) == []


def test_a_conflict_is_open_whatever_ends_its_lines(copy: Path) -> None:
    conflict(copy, "kept.md")
    (copy / "kept.md").write_bytes((copy / "kept.md").read_bytes().replace(b"\n", b"\r\n"))

    assert list_open(copy) == ["kept.md"]


def test_git_that_fails_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ChangeError, match="git diff failed"):
        add_resolved(tmp_path)


def test_a_conflict_that_is_half_resolved_is_open(copy: Path) -> None:
    conflict(copy, "kept.md")
    text = (copy / "kept.md").read_text()
    (copy / "kept.md").write_text(text.partition("=======\n")[2])

    add_resolved(copy)

    assert list_open(copy) == ["kept.md"]
    assert run_git(copy, "ls-files", "--unmerged").stdout


@pytest.mark.parametrize("resolve", [lambda path: path.write_text("both\n"), Path.unlink])
def test_a_conflict_that_is_resolved_is_added(
    copy: Path, resolve: Callable[[Path], object]
) -> None:
    conflict(copy, "kept.md")
    resolve(copy / "kept.md")

    add_resolved(copy)

    assert list_open(copy) == []
    assert run_git(copy, "ls-files", "--unmerged").stdout == ""


def test_of_files_that_went_those_are_listed_that_the_owner_had_changed(copy: Path) -> None:
    take_release(copy)
    (copy / "gone.md").unlink()
    (copy / "changed.md").rename(copy / "moved.md")
    git(copy, "add", "-A")

    assert list_gone(copy) == ["changed.md"]


# What is left


def test_all_code_is_rewritten_but_what_is_no_python(copy: Path) -> None:
    (copy / "mine.py").write_bytes(OLD.replace("\n", "\r\n").encode())
    (copy / "draft.py").write_text(f"{OLD}X = (\n")
    (copy / "link.py").symlink_to("draft.py")
    (copy / "bytes.py").write_bytes(b"\xff")
    reports: list[str] = []

    rewritten, left = rewrite_code(copy, reports.append)

    newer = OLD.replace("table=", "name=").replace("\n", "\r\n")
    assert (copy / "mine.py").read_bytes() == newer.encode()
    assert (copy / "draft.py").read_text() == f"{OLD}X = (\n"
    assert reports == ["rewrote mine.py"]
    assert rewritten == ["mine.py"]
    assert [line.partition(":")[0] for line in left] == ["bytes.py", "draft.py"]


def test_what_a_check_prints_is_left_if_it_fails(copy: Path) -> None:
    fails = "\t@echo this is wrong; exit 1\n"
    rules = [f"{verb}:\n{fails if verb == CHECKS[1] else ''}" for verb in CHECKS]
    (copy / "Makefile").write_text("\n".join([f".PHONY: {' '.join(CHECKS)}", *rules]))

    [left] = run_checks(copy, lambda line: None)

    assert left.startswith(f"make {CHECKS[1]} fails:\n    this is wrong\n")


@pytest.fixture
def checked() -> list[str]:
    """What the checks find."""
    return []


@pytest.fixture
def steps(
    copy: Path, checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> list[tuple[str, list[str]]]:
    """The steps that generate; no other runs, and no check."""
    steps: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(
        finishing, "format_code", lambda *files: [(f"formatting {files}", ["true"])]
    )
    monkeypatch.setattr(finishing, "renew_generated", lambda title: steps)
    monkeypatch.setattr(finishing, "run_checks", lambda root, report: [*checked])
    return steps


def test_what_is_generated_has_no_conflict_then(
    copy: Path, steps: list[tuple[str, list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    conflict(copy, "kept.md")
    steps.append(("generating", ["cp", "changed.md", "kept.md"]))

    assert finish(copy, "v0.2.0") == 0

    printed = capsys.readouterr().out
    assert "to do, Unreleased: Name it." in printed
    assert "done. Next:" in printed
    assert "formatting" not in printed
    assert run_git(copy, "ls-files", "--unmerged").stdout == ""


def test_a_copy_without_the_changelog_has_nothing_to_do(
    copy: Path, steps: list[tuple[str, list[str]]]
) -> None:
    (copy / FILE).unlink()

    assert finish(copy, "v0.2.0") == 0


def test_a_step_that_fails_is_left_and_what_was_rewritten_stays(
    copy: Path,
    steps: list[tuple[str, list[str]]],
    checked: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    checked.append("make types fails:")
    conflict(copy, "kept.md")
    (copy / "mine.py").write_text(OLD)
    steps.append(("generating", ["sh", "-c", "echo half >changed.md; echo no room; exit 1"]))

    with pytest.raises(ChangeError, match="3 things are left to you"):
        finish(copy, "v0.2.0")

    printed = capsys.readouterr().out
    assert "left: generating failed (no room)" in printed
    assert "left: kept.md: both changed the same lines" in printed
    assert "left: make types fails:" in printed
    assert (copy / "changed.md").read_text() == "of the owner\n"
    assert (copy / "mine.py").read_text() == OLD.replace("table=", "name=")
    assert "formatting ('mine.py',)\n" in printed


@pytest.mark.parametrize("to", ["v0.1.0", "v0.2.0"])
def test_packages_are_locked_before_they_are_installed(
    copy: Path, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a release that is there, nothing is merged."""
    if to == "v0.2.0":
        conflict(copy, LOCK)
        take_release(copy)
    ran: list[object] = []

    def fail(root: Path, steps: list[tuple[str, list[str]]], report: object) -> None:
        ran.extend([list_open(root), *(title for title, _ in steps)])
        (root / "kept.md").write_text("half\n")
        raise ChangeError("enough")

    monkeypatch.setattr(beginning, "run_steps", fail)
    demand_refused(copy, to, "enough")

    assert ran == [[], "locking the packages", "installing them"]
    assert (copy / "kept.md").read_text() == "first of kept.md\n"


# The changelog


@pytest.mark.parametrize(
    ("since", "items"),
    [
        ("v0.2.0", ["Unreleased: Look up, at night.", "Unreleased: Name it."]),
        ("v0.2.0-3-gabcdef", ["Unreleased: Look up, at night.", "Unreleased: Name it."]),
        (
            "v0.1.0",
            ["Unreleased: Look up, at night.", "Unreleased: Name it.", "0.2.0: Pack."],
        ),
    ],
)
def test_what_is_to_be_done_is_that_of_later_releases(since: str, items: list[str]) -> None:
    assert list_to_do(CHANGELOG, since) == items


def test_the_changelog_has_the_form_that_is_read() -> None:
    sections = [*list_sections((CHECKOUT / FILE).read_text())]
    headings = {
        each for _, text in sections for each in re.findall(r"^###? .*", text, re.MULTILINE)
    }

    assert headings <= HEADINGS
    assert sections[-1][0] == "0.1.0"


def test_of_a_release_that_is_not_known_all_is_to_be_done() -> None:
    assert len(list_to_do(CHANGELOG, "abcdef")) == len(list_to_do(CHANGELOG, "v0.0.1")) == 4
