"""The recipes of docs/contributing.md: what `make new` adds, and what is changed by hand.

An example is applied to a copy of the checkout, where the commands of its recipe must succeed.
"""

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scripts.changes import CHECKOUT, run_git
from test_support.checkout_copy import Copy, copied_checkout

PAGE = CHECKOUT / "docs" / "contributing.md"
DIFFS = PAGE.parent / "diffs"
LINES_MAX = 10
"""Of a recipe: what takes more is a verb that is missing."""
SOURCE = "orders-svc/src/orders_svc"
NEEDED = {
    "Add a rule that refuses a command": {
        f"{SOURCE}/order/order.py": "cannot import name 'MADE_TO_ORDER'",
        f"{SOURCE}/order/api.py": "FAILED orders-svc/tests/integration/",
    },
    "Add a setting": {
        f"{SOURCE}/settings.py": "has no attribute .pending_period_seconds",
        f"{SOURCE}/__main__.py": "Missing positional argument .period_seconds",
        f"{SOURCE}/order/pending_orders.py": "Too many arguments for .measure_periodically",
        "orders-svc/service.toml": "FAILED verification/tests/unit/",
        ".env.example": "FAILED verification/tests/unit/",
    },
}
"""Files of examples besides tests and documents, and what fails without each."""
QUICKLY_MISSED = (f"{SOURCE}/order/order.py", f"{SOURCE}/__main__.py")
"""What fails without one of them needs no database; the others are left out in long tests."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A section that has steps, an example, and the commands that are run after it."""

    title: str
    text: str

    @property
    def diff(self) -> Path:
        name: str
        [name] = re.findall(r"\(diffs/([a-z-]+\.diff)\)", self.text)
        return DIFFS / name

    @property
    def steps(self) -> Sequence[str]:
        """Each with the lines that follow it."""
        return re.findall(r"^\d+\. (.*(?:\n {3}.*)*)", self.text, re.MULTILINE)

    @property
    def named(self) -> set[str]:
        """The files and folders that the steps name."""
        return set(re.findall(r"`((?:[\w.-]+/)+[\w.-]*|\.[\w.]+)`", "\n".join(self.steps)))

    @property
    def changed(self) -> set[str]:
        """The files that the example changes or adds."""
        return set(re.findall(r"^\+\+\+ b/(.+)$", self.diff.read_text(), re.MULTILINE))

    @property
    def commands(self) -> Sequence[str]:
        block: str
        [block] = re.findall(r"^```sh\n(.*?)^```", self.text, re.DOTALL | re.MULTILINE)
        return block.splitlines()


def read_recipes() -> Iterator[Recipe]:
    _, *sections = re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)
    for section in sections:
        title, _, text = section.partition("\n")
        yield Recipe(title, text)


RECIPES = list(read_recipes())
BASE = "as-copied"
OF_VERBS = re.findall(r"`(make new thing=[^`]+)`", PAGE.read_text())


@pytest.fixture(scope="module")
def installed() -> Iterator[Copy]:
    """A copy that runs its own code."""
    with copied_checkout() as copy:
        copy.printed("make", "setup")
        copy.git("tag", BASE)
        yield copy


@pytest.fixture
def copy(installed: Copy) -> Copy:
    """The copy as it was before the tests."""
    installed.git("clean", "-fdq")
    installed.git("reset", "-q", "--hard", BASE)
    return installed


@pytest.mark.parametrize("command", OF_VERBS)
def test_what_is_added_by_a_command_can_be_added(command: str) -> None:
    ended = subprocess.run(
        [*command.split(), "dry=1"], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stderr
    assert "nothing was changed" in ended.stdout


def test_each_thing_that_make_new_adds_has_a_row() -> None:
    listed = subprocess.run(
        ["make", "new"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout

    things = re.findall(r"^ {2}([a-z-]+) ", listed, re.MULTILINE)
    assert [re.findall(r"thing=([a-z-]+)", command)[0] for command in OF_VERBS] == things


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)
def test_a_recipe_names_the_files_that_its_example_changes(recipe: Recipe) -> None:
    """A folder stands for one new file in it."""
    folders = {name for name in recipe.named if name.endswith("/")}
    in_folders = [
        path for path in recipe.changed - recipe.named if f"{Path(path).parent}/" in folders
    ]

    assert len(recipe.steps) <= LINES_MAX
    assert recipe.changed - {*in_folders} == recipe.named - folders
    assert sorted(f"{Path(path).parent}/" for path in in_folders) == sorted(folders)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)
def test_an_example_fits_the_code(recipe: Recipe) -> None:
    run_git(CHECKOUT, "apply", "--check", str(recipe.diff)).check_returncode()


@pytest.mark.verify(part="copies")
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)
def test_an_example_passes_the_commands_of_its_recipe(copy: Copy, recipe: Recipe) -> None:
    copy.git("apply", str(recipe.diff))
    run_commands(copy, recipe)


@pytest.mark.verify(part="copies")
def test_all_examples_together_are_linted_and_typed(copy: Copy) -> None:
    for recipe in RECIPES:
        copy.git("apply", str(recipe.diff))
    copy.printed("make", "generate")
    copy.commit("the examples")

    copy.printed("make", "fmt", "types", "imports", "contracts-check")
    copy.demand_current()


def list_left_out() -> Iterator[Any]:
    """Yield a recipe, a file of its example, and what then fails."""
    for recipe in RECIPES:
        for file, failure in NEEDED.get(recipe.title, {}).items():
            quick = file in QUICKLY_MISSED
            yield pytest.param(
                *(recipe, file, failure),
                id=Path(file).name,
                marks=() if quick else pytest.mark.verify(part="copies"),
            )


@pytest.mark.parametrize(("recipe", "file", "failure"), [*list_left_out()])
def test_a_file_that_is_left_out_is_missed(
    copy: Copy, recipe: Recipe, file: str, failure: str
) -> None:
    """The negative control."""
    copy.git("apply", f"--exclude={file}", str(recipe.diff))

    with pytest.raises(AssertionError, match=failure):
        run_commands(copy, recipe)


def run_commands(copy: Copy, recipe: Recipe) -> None:
    """Run the commands of a recipe. Raises AssertionError: one failed."""
    for command in recipe.commands:
        copy.printed("bash", "-c", command)
