"""What `copier copy` asks, and where it puts the copy."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.answers import DECLARED, write_answers
from scripts.changes import CHECKOUT, ChangeError
from scripts.copying import TEMPLATE, demand_clone, demand_empty, demand_same_name, fill
from scripts.rename import NAME_FORM
from test_support.left_out import PARTS
from test_support.waits import HANGS_AFTER_SECONDS

QUESTIONS: dict[str, Any] = yaml.safe_load((CHECKOUT / "copier.yml").read_text())


def test_each_part_can_be_chosen() -> None:
    assert {*QUESTIONS["without"]["choices"].values()} == DECLARED - {TEMPLATE}
    assert PARTS.keys() == DECLARED


def test_the_form_of_a_name_is_that_of_make_rename() -> None:
    assert f"regex_search('^{NAME_FORM}$')" in QUESTIONS["name"]["validator"]


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


def test_only_a_clone_of_a_release_is_changed(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=test", "-c", "user.email=test")
        command = ["git", *identity, *arguments]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=HANGS_AFTER_SECONDS)

    git("init", "-q")
    (tmp_path / "README.md").write_text("# Sky\n")
    (tmp_path / "sky").mkdir()
    git("add", "-A")
    git("commit", "-qm", "sky")
    with pytest.raises(ChangeError, match="is no clone of a release"):
        demand_clone(tmp_path)

    git("checkout", "-q", "--detach")
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
