"""What `copier copy` asks, and where it puts the copy."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import copying
from scripts.answers import DECLARED, write_answers
from scripts.changes import CHECKOUT, ChangeError, list_tracked, read_texts
from scripts.copying import TEMPLATE, demand_clone, demand_empty, demand_same_name, fill, make_copy
from scripts.rename import NAME_FORM
from scripts.upgrade.changelog import FILE, list_sections
from scripts.upgrade.merge import COPIER_PACKAGE, MARK, find_mark
from test_support.left_out import PARTS
from test_support.made_copies import RELEASES
from test_support.repositories import commit_all, git

QUESTIONS: dict[str, Any] = yaml.safe_load((CHECKOUT / "copier.yml").read_text())


def test_each_part_can_be_chosen() -> None:
    assert {*QUESTIONS["without"]["choices"].values()} == DECLARED - {TEMPLATE}
    assert PARTS.keys() == DECLARED


def test_the_form_of_a_name_is_that_of_make_rename() -> None:
    assert f"regex_search('^{NAME_FORM}$')" in QUESTIONS["name"]["validator"]


def test_each_release_of_the_changelog_has_a_commit() -> None:
    """But for the newest one, before it is committed."""
    names = [name for name, _ in list_sections((CHECKOUT / FILE).read_text())]

    tags = [f"v{name}" for name in names if name != "Unreleased"]
    assert [*reversed(RELEASES)] in (tags, tags[1:])


def test_an_upgrade_has_the_copier_of_a_copy() -> None:
    assert f"copier~={QUESTIONS['_min_copier_version']}" == COPIER_PACKAGE


def test_the_mark_of_an_update_is_the_one_that_its_end_removes() -> None:
    [migration] = QUESTIONS["_migrations"]

    assert MARK in migration["command"]


def test_copier_can_merge_all_files() -> None:
    """Of a file that is no text, it would take the one of the release, without a word."""
    files = [file for file in list_tracked(CHECKOUT) if not (CHECKOUT / file).is_symlink()]

    assert read_texts(CHECKOUT, files).keys() == {*files}


@pytest.mark.parametrize("content", [[], [".git"]])
def test_a_new_folder_and_a_new_checkout_can_be_written(tmp_path: Path, content: list[str]) -> None:
    for name in content:
        (tmp_path / name).write_text("")

    demand_empty(tmp_path)
    demand_empty(tmp_path / "new")


def test_a_folder_with_files_of_others_cannot(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("mine")

    with pytest.raises(ChangeError, match="is not empty: choose a new folder"):
        demand_empty(tmp_path)


def test_an_update_with_another_name_is_refused(tmp_path: Path) -> None:
    write_answers(tmp_path, {"name": "sky", "without": []})

    demand_same_name(tmp_path, "sky")
    demand_same_name(tmp_path / "new", "ocean")
    with pytest.raises(ChangeError, match="first make rename name=ocean, and commit it"):
        demand_same_name(tmp_path, "ocean")


def begin_repository(root: Path) -> None:
    git(root, "init", "-q")
    (root / "README.md").write_text("# Sky\n")
    commit_all(root)


@pytest.mark.parametrize("is_update", [True, False])
def test_an_update_says_that_files_are_not_whole_before_it_writes_them(
    tmp_path: Path, is_update: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copier brings back what the owner changed later, and says that it has."""
    made, folder = tmp_path / "made", tmp_path / "folder"
    for each in (made, folder):
        each.mkdir()
    (made / "pyproject.toml").write_text('[project]\nname = "sky"\n')
    (made / "parts.toml").write_text("")
    begin_repository(made)
    git(made, "checkout", "-q", "--detach")
    (begin_repository if is_update else Path.rmdir)(folder)
    monkeypatch.setattr(copying, "run_steps", lambda *_: None)
    monkeypatch.setattr(copying, "demand_usable", lambda *_: None)

    answers = {"name": "ocean", "without": [], "_commit": "v0.2.0"}
    make_copy(made, folder, answers, is_update=is_update)

    assert find_mark(folder).is_file() is is_update


def test_only_a_clone_of_a_release_is_changed(tmp_path: Path) -> None:
    (tmp_path / "sky").mkdir()
    begin_repository(tmp_path)
    with pytest.raises(ChangeError, match="is no clone of a release"):
        demand_clone(tmp_path)

    git(tmp_path, "checkout", "-q", "--detach")
    demand_clone(tmp_path)

    with pytest.raises(ChangeError, match="is no clone of a release"):
        demand_clone(tmp_path / "sky")
    (tmp_path / "README.md").write_text("# Mine\n")
    with pytest.raises(ChangeError, match="there are uncommitted changes"):
        demand_clone(tmp_path)


@pytest.mark.parametrize("there", ["a link out of it", "a folder"])
def test_nothing_is_written_where_a_path_leads_elsewhere(tmp_path: Path, there: str) -> None:
    made, folder, outside = tmp_path / "made", tmp_path / "folder", tmp_path / "outside"
    for each in (made / "sky", folder, outside):
        each.mkdir(parents=True)
    (made / "moon.md").write_text("new")
    (made / "sky/sun.md").write_text("new")
    if there == "a folder":
        (folder / "sky/sun.md").mkdir(parents=True)
    else:
        (folder / "sky").symlink_to(outside)

    with pytest.raises(ChangeError, match=r"sky/sun\.md is not a file of its own"):
        fill(folder, made, ["moon.md", "sky/sun.md"])

    assert not (folder / "moon.md").exists()
    assert not (outside / "sun.md").exists()
