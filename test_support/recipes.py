"""The recipes of CONTRIBUTING.md, as tests read them: their steps, commands and patches."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.recipes import CHECKOUT, list_paths

DOCUMENT = CHECKOUT / "CONTRIBUTING.md"

SECTION = re.compile(r"^### (?P<title>.+)\n(?P<text>(?:(?!^##).*\n)*)", re.MULTILINE)
LINK = re.compile(r"\]\((docs/recipes/[\w-]+\.patch)\)")
COMMANDS = re.compile(r"^```sh\n(.+?)^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w.-]+\.(?:py|sql|toml|md|json)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A section with its steps and the commands that prove it; some have a patch as example."""

    title: str
    steps: str
    commands: Sequence[str]
    patch: Path | None

    @property
    def name(self) -> str:
        return self.patch.stem if self.patch else self.title

    @property
    def changed(self) -> Sequence[str]:
        """The files that the patch changes or creates."""
        return list_paths(self.patch) if self.patch else []


def read_recipes(text: str) -> dict[str, Recipe]:
    """The recipes by their names."""
    _, _, recipes = text.partition("\n## Recipes\n")
    found = [to_recipe(each["title"], each["text"]) for each in SECTION.finditer(recipes)]
    return {each.name: each for each in found}


def to_recipe(title: str, text: str) -> Recipe:
    patch, commands = LINK.search(text), COMMANDS.search(text)
    return Recipe(
        title=title,
        steps="".join(re.findall(r"^(?:\d\.|  ) .+\n", text, re.MULTILINE)),
        commands=commands[1].splitlines() if commands else [],
        patch=CHECKOUT / patch[1] if patch else None,
    )


def named_paths(steps: str) -> tuple[set[str], set[str]]:
    """The files that the steps of a recipe name, and the folders of which they name no file.

    A name without a folder is that of a file in the folder that was named last.
    """
    files: set[str] = set()
    folders: set[str] = set()
    folder = ""
    for code in CODE.findall(steps):
        if code.endswith("/"):
            folder = code
            folders.add(folder)
        elif FILE.fullmatch(code):
            files.add(folder + code)
            folders.discard(folder)
        elif FILE.fullmatch(code.rpartition("/")[2]) and " " not in code:
            files.add(code)
    return files, folders


RECIPES = read_recipes(DOCUMENT.read_text())
