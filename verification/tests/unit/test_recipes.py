"""The recipes of CONTRIBUTING.md name what their patches change, and nothing else."""

from pathlib import Path

import pytest

from scripts import recipes
from scripts.recipes import PATCHES
from test_support.recipes import RECIPES, Recipe, named_paths

OTHERS = ("Add a service",)
"""Recipes without a patch: `make new-service` makes it, and has tests of its own."""
SERVICE = """
1. `a-svc/src/`: as in `b.py` and `c.sql`.
2. More in `d.py`. `a-svc/tests/`, `a-svc/service.toml`: the rest.
"""


def test_each_patch_has_a_recipe_and_each_recipe_a_patch() -> None:
    assert {name for name, each in RECIPES.items() if each.patch is None} == {*OTHERS}
    assert all(each.patch.is_file() for each in RECIPES.values() if each.patch)
    found = {each.patch.name for each in RECIPES.values() if each.patch}
    assert found == {path.name for path in PATCHES.glob("*.patch")}


PATCHED = [each for each in RECIPES.values() if each.patch]


@pytest.mark.parametrize("recipe", PATCHED, ids=lambda each: each.name)
def test_a_recipe_names_the_files_of_its_patch(recipe: Recipe) -> None:
    files, folders = named_paths(recipe.steps)
    changed = set(recipe.changed)

    unnamed = {path for path in changed - files if not path.startswith(tuple(folders) or "/")}
    assert unnamed == set(), "a step of the recipe is missing"
    assert files - changed == set(), "the patch does not change these"
    assert [each for each in folders if not any(path.startswith(each) for path in changed)] == []


@pytest.mark.parametrize("recipe", PATCHED, ids=lambda each: each.name)
def test_the_commands_of_a_recipe_run_all_tests_of_its_patch(recipe: Recipe) -> None:
    run = tuple(path for command in recipe.commands for path in command.split() if "/" in path)

    missing = [
        path
        for path in recipe.changed
        if path.rpartition("/")[2].startswith("test_") and not path_is_in(path, run)
    ]
    assert missing == []


def path_is_in(path: str, run: tuple[str, ...]) -> bool:
    return any(each.partition("::")[0] == path or path.startswith(f"{each}/") for each in run)


def test_files_are_found_in_the_folder_that_was_named_last() -> None:
    files, folders = named_paths(SERVICE)

    assert files == {"a-svc/src/b.py", "a-svc/src/c.sql", "a-svc/src/d.py", "a-svc/service.toml"}
    assert folders == {"a-svc/tests/"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One with a file of nine lines."""
    root = tmp_path / "repository"
    root.mkdir()
    (root / "file").write_text("".join(f"{number}\n" for number in range(1, 10)))
    recipes.git(root, "init", "--quiet")
    commit(root)
    return root


@pytest.fixture
def patch(repository: Path) -> Path:
    """A patch of the fifth line."""
    path = repository.parent / "some.patch"
    replace(repository, "5", "patched")
    path.write_text(recipes.diff(repository))
    recipes.git(repository, "reset", "--quiet", "--hard")
    return path


def commit(root: Path) -> None:
    recipes.git(root, "add", "--all")
    recipes.git(root, "commit", "--quiet", "--message", "some change")


def replace(root: Path, line: str, other: str) -> None:
    path = root / "file"
    path.write_text(path.read_text().replace(f"{line}\n", f"{other}\n"))


def test_a_patch_is_merged_into_code_that_has_changed_next_to_it(
    repository: Path, patch: Path
) -> None:
    replace(repository, "3", "changed")
    commit(repository)
    with pytest.raises(recipes.GitFailed):
        recipes.apply(repository, patch)

    recipes.merge(repository, patch)

    assert (repository / "file").read_text().split()[2:5] == ["changed", "4", "patched"]
    assert recipes.write(repository, patch) == 0
    recipes.git(repository, "reset", "--quiet", "--hard")
    recipes.apply(repository, patch)


def test_a_conflict_is_marked_and_is_not_written(repository: Path, patch: Path) -> None:
    before = patch.read_text()
    replace(repository, "5", "changed")
    commit(repository)

    with pytest.raises(recipes.GitFailed):
        recipes.merge(repository, patch)

    assert recipes.write(repository, patch) == 1
    assert patch.read_text() == before
    (repository / "file").write_text("resolved\n")
    assert recipes.write(repository, patch) == 0
    assert "+resolved" in patch.read_text()


def test_without_a_copy_nothing_is_written(tmp_path: Path) -> None:
    assert recipes.write(tmp_path, tmp_path / "some.patch") == 1
