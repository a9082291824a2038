"""The recipes of CONTRIBUTING.md: each patch in a copy of this checkout, and what proves it.

The copy has no packages of its own: the interpreter of this checkout finds the copy's code first.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from local_stack.testing import new_folder, sweep
from scripts import recipes
from test_support.checkout_copy import inherit_variables
from test_support.recipes import RECIPES, Recipe

COMMAND_SECONDS_MAX = 900

PATCHED = [each for each in RECIPES.values() if each.patch]
QUICK = ("contracts", "generate", "lint", "contracts-check")
"""Verbs of recipes that take seconds."""
HALF_A_MINUTE = (
    "analytics-spark/tests/unit/test_cells.py",
    "verification/tests/unit/test_oracle.py",
)
"""Unit tests that are left to the long test of all commands."""


class Failed(Exception):
    """A command of a recipe failed; the message is what it printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The files that people commit, as they are now."""

    root: Path

    def reset(self) -> None:
        recipes.git(self.root, "reset", "--quiet", "--hard")
        recipes.git(self.root, "clean", "--quiet", "--force", "-d")

    def apply(self, recipe: Recipe, *, leave_out: Sequence[str] = ()) -> None:
        assert recipe.patch
        try:
            recipes.apply(self.root, recipe.patch, leave_out=leave_out)
        except recipes.GitFailed as error:
            pytest.fail(
                f"{error}{recipe.patch.name} is behind the code: `make recipe name={recipe.name}`"
                " marks the conflicts in a copy; resolve them, then"
                f" `make recipe name={recipe.name} args=--write`"
            )

    def run(self, command: str) -> str:
        """What a command of a recipe prints. Raises Failed."""
        ended = subprocess.run(
            self.to_arguments(command),
            cwd=self.root,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
        )
        if ended.returncode:
            raise Failed(f"{command}\n{ended.stdout}")
        return ended.stdout

    def to_arguments(self, command: str) -> list[str]:
        """With this interpreter, and without `make setup`."""
        program, *arguments = command.split()
        if program == "make":
            without_setup = ("--no-print-directory", "--old-file=setup")
            return ["make", *without_setup, f"VENV_PYTHON={sys.executable}", *arguments]
        assert program == ".venv/bin/python", command
        if arguments[:2] == ["-m", "pytest"]:
            arguments += ["-q", "-n", "0"]
        return [sys.executable, *arguments]

    @property
    def variables(self) -> dict[str, str]:
        """The copy's code comes first."""
        code = os.pathsep.join(map(str, (self.root, *sorted(self.root.glob("*/src")))))
        return inherit_variables() | {"PYTHONPATH": code, "MYPYPATH": code}


@pytest.fixture(scope="module")
def copied() -> Iterator[Copy]:
    sweep()
    root = new_folder()
    try:
        recipes.copy_checkout(root)
        yield Copy(root=root)
    finally:
        shutil.rmtree(root)


@pytest.fixture
def copy(copied: Copy) -> Copy:
    copied.reset()
    return copied


def list_unit_tests(recipe: Recipe) -> list[str]:
    unit_tests = [path for path in recipe.changed if re.search(r"/tests/unit/test_\w+\.py$", path)]
    return [path for path in unit_tests if path not in HALF_A_MINUTE]


@pytest.mark.parametrize("recipe", PATCHED, ids=lambda each: each.name)
def test_its_patch_applies_and_passes_its_unit_tests(copy: Copy, recipe: Recipe) -> None:
    copy.apply(recipe)

    for command in recipe.commands:
        if command in [f"make {verb}" for verb in QUICK]:
            copy.run(command)
    if tests := list_unit_tests(recipe):
        assert "passed" in copy.run(f".venv/bin/python -m pytest {' '.join(tests)}")
    copy.run("make fmt")
    assert recipe.patch
    assert without_places(recipes.diff(copy.root)) == without_places(recipe.patch.read_text())


def without_places(diff: str) -> list[str]:
    """A diff without line numbers and hashes, which differ after each change of the files."""
    return [line for line in diff.splitlines() if not line.startswith(("@@", "index "))]


@pytest.mark.long
@pytest.mark.parametrize("recipe", PATCHED, ids=lambda each: each.name)
def test_all_its_commands_succeed(copy: Copy, recipe: Recipe) -> None:
    copy.apply(recipe)

    for command in recipe.commands:
        printed = copy.run(command)
        assert "skipped" not in printed, printed


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """A step that is left out, the command of the recipe that fails then, and what it prints."""

    recipe: str
    path: str
    command: str
    printed: str


OMISSIONS = [
    Omission(
        recipe="aggregate",
        path="contracts/samples/vouchers.v1/*",
        command="make contracts-check",
        printed="contracts/samples/vouchers.v1/voucher-issued.v1.json: does not match the code",
    ),
    Omission(
        recipe="event-version",
        path="orders-svc/src/orders_svc/item/contract.py",
        command="make contracts-check",
        printed="item-repriced v1: field `currency` was added without a default",
    ),
]

LONG_OMISSIONS = [
    Omission(
        recipe="command",
        path="orders-svc/service.toml",
        command=".venv/bin/python -m pytest orders-svc/tests/unit/test_declared_types.py",
        printed="item-renamed",
    ),
    Omission(
        recipe="read-model",
        path="users-svc/src/users_svc/migrations/0005_moves.sql",
        command=".venv/bin/python -m pytest verification/tests/unit/test_migrations.py",
        printed="users_svc/0005_moves.sql",
    ),
    Omission(
        recipe="column",
        path="analytics-spark/src/analytics_spark/definition.sql",
        command=".venv/bin/python -m pytest verification/tests/unit/test_oracle.py",
        printed="bulk",
    ),
    Omission(
        recipe="command",
        path="orders-svc/src/orders_svc/item/catalogue.py",
        command=".venv/bin/python -m mypy orders-svc",
        printed="catalogue.py",
    ),
    Omission(
        recipe="aggregate",
        path="orders-svc/src/orders_svc/api.py",
        command=".venv/bin/python -m pytest orders-svc/tests/integration/test_vouchers_api.py",
        printed="test_a_voucher_is_redeemed_by_one_order",
    ),
    Omission(
        recipe="read-model",
        path="users-svc/src/users_svc/read_models.py",
        command=".venv/bin/python -m pytest users-svc/tests/integration/test_moves.py",
        printed="test_a_rebuild_adds_what_happened_before",
    ),
    Omission(
        recipe="column",
        path="analytics-spark/src/analytics_spark/migrations/0007_bulk.sql",
        command=".venv/bin/python -m pytest analytics-spark/tests/integration/test_sink.py",
        printed='column "bulk"',
    ),
]


@pytest.mark.parametrize(
    "omission",
    [*OMISSIONS, *(pytest.param(each, marks=pytest.mark.long) for each in LONG_OMISSIONS)],
    ids=lambda each: f"{each.recipe} without {each.path}",
)
def test_without_a_step_a_command_of_the_recipe_fails(copy: Copy, omission: Omission) -> None:
    """The negative control."""
    recipe = RECIPES[omission.recipe]
    copy.apply(recipe, leave_out=[omission.path])
    if "make contracts" in recipe.commands and "pytest" in omission.command:
        copy.run("make contracts")

    with pytest.raises(Failed) as failed:
        copy.run(omission.command)

    assert omission.printed in str(failed.value)


@pytest.mark.parametrize("omission", [*OMISSIONS, *LONG_OMISSIONS], ids=lambda each: each.path)
def test_a_command_that_fails_is_one_of_the_recipe(omission: Omission) -> None:
    commands = RECIPES[omission.recipe].commands
    *_, what = omission.command.split()

    assert omission.command in commands or any(
        part == what or what.startswith(f"{part}/") for each in commands for part in each.split()
    )
