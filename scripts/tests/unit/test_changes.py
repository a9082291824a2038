"""What changes a checkout changes all of it or nothing."""

from pathlib import Path

import pytest

from scripts.changes import (
    CHECKOUT,
    LOCK,
    ChangeError,
    copy_files,
    demand_committed,
    find_reason,
    lock_packages,
    remove_empty,
    run_steps,
    unchanged_if_it_fails,
)

EXECUTABLE = 0o755


def test_after_an_error_all_files_are_as_before(tmp_path: Path) -> None:
    (tmp_path / "sky").mkdir()
    (tmp_path / "sky/moon.sh").write_text("rise")
    (tmp_path / "sky/moon.sh").chmod(EXECUTABLE)
    (tmp_path / "sun.md").write_text("hot")

    def spoil() -> None:
        (tmp_path / "sky/moon.sh").unlink()
        (tmp_path / "sky").rmdir()
        (tmp_path / "sun.md").write_text("cold")
        (tmp_path / "stars/new").mkdir(parents=True)
        (tmp_path / "stars/new/star.md").write_text("far")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), unchanged_if_it_fails(tmp_path):
        spoil()

    assert (tmp_path / "sky/moon.sh").read_text() == "rise"
    assert (tmp_path / "sky/moon.sh").stat().st_mode & 0o777 == EXECUTABLE
    assert (tmp_path / "sun.md").read_text() == "hot"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sky", "sun.md"]


def test_folders_with_a_dot_and_links_come_back_if_they_are_named(tmp_path: Path) -> None:
    (tmp_path / ".sky").mkdir()
    (tmp_path / ".sky/moon.md").write_text("cold")
    (tmp_path / "link").symlink_to(".sky/moon.md")
    (tmp_path / "target").write_text("far")

    def spoil() -> None:
        (tmp_path / ".sky/moon.md").rename(tmp_path / ".sky/sun.md")
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to("target")
        raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        unchanged_if_it_fails(tmp_path, [".sky/moon.md", ".sky/sun.md", "link"]),
    ):
        spoil()

    assert [path.name for path in (tmp_path / ".sky").iterdir()] == ["moon.md"]
    assert (tmp_path / "link").readlink() == Path(".sky/moon.md")
    assert (tmp_path / "link").read_text() == "cold"
    assert (tmp_path / "target").read_text() == "far"


@pytest.mark.parametrize("name", [".mine", "mine"])
def test_a_folder_with_anything_but_bytecode_is_not_removed(tmp_path: Path, name: str) -> None:
    (tmp_path / "sky/moon/__pycache__").mkdir(parents=True)
    (tmp_path / "sky/moon/__pycache__/sea.pyc").write_text("")
    (tmp_path / "sky" / name).write_text("mine")

    remove_empty(tmp_path / "sky/moon")

    assert [path.name for path in (tmp_path / "sky").iterdir()] == [name]


def test_without_an_error_the_changes_stay(tmp_path: Path) -> None:
    with unchanged_if_it_fails(tmp_path):
        (tmp_path / "sun.md").write_text("hot")

    assert (tmp_path / "sun.md").read_text() == "hot"


def test_files_go_over_those_that_are_there_and_links_stay_links(tmp_path: Path) -> None:
    made, folder = tmp_path / "made", tmp_path / "folder"
    (made / "sky").mkdir(parents=True)
    (made / "sky/moon.sh").write_text("new")
    (made / "sky/moon.sh").chmod(0o755)
    (made / "link").symlink_to("sky/moon.sh")
    (folder / "sky").mkdir(parents=True)
    (folder / "sky/moon.sh").write_text("old")
    (folder / "target").write_text("mine")
    (folder / "link").symlink_to("target")

    copy_files(made, ["sky/moon.sh", "link"], folder)

    assert (folder / "sky/moon.sh").read_text() == "new"
    assert (folder / "sky/moon.sh").stat().st_mode & 0o777 == 0o755
    assert (folder / "link").readlink() == Path("sky/moon.sh")
    assert (folder / "target").read_text() == "mine"


def test_what_git_cannot_report_is_not_taken_for_committed(tmp_path: Path) -> None:
    with pytest.raises(ChangeError, match=r"git status failed \(not a git repository"):
        demand_committed(tmp_path)


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("Using CPython\nerror: Failed to fetch: x\n  cause: y\n\nhint: z\n", "Failed to fetch: x"),
        ("locking\nno room\n", "no room"),
        ("", "no output"),
    ],
)
def test_the_reason_of_a_failure_is_the_line_of_the_error(printed: str, reason: str) -> None:
    assert find_reason(printed) == reason


def test_packages_are_locked_with_the_python_of_the_checkout(tmp_path: Path) -> None:
    """That of `.python-version` can be missing; here no machine has it."""
    python = 'requires-python = ">=3.11"\n'
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "sky"\nversion = "0"\n{python}')
    (tmp_path / ".python-version").write_text("3.99\n")
    (tmp_path / LOCK).write_text(f"version = 1\n{python}")
    for folder in (".tools", ".venv"):
        (tmp_path / folder).symlink_to(CHECKOUT / folder)

    run_steps(tmp_path, [lock_packages("locking")], list[str]().append)

    assert 'name = "sky"' in (tmp_path / LOCK).read_text()
