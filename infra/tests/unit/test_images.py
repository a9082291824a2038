"""Images of programs that are no package have all files that these import."""

import ast
import re
from collections.abc import Iterator

import pytest

from local_stack.settings import CHECKOUT

FIRST_PARTY = ("scripts", "test_support", "verification")
"""Folders of the checkout from which files are copied; packages of services are installed."""
PROGRAMS = {
    "load": ["verification.load.__main__"],
    "demo": ["scripts.demo", "scripts.trace"],
}
"""What the stages of `infra/Dockerfile` run; each is made of those before it."""


def list_imported(program: str) -> Iterator[str]:
    """The files of the checkout that a module is made of, with those that it imports."""
    waiting, seen = [program], set()
    while waiting:
        file = find_file(waiting.pop())
        if file is None or file in seen:
            continue
        seen.add(file)
        yield file
        for node in ast.walk(ast.parse((CHECKOUT / file).read_text())):
            if isinstance(node, ast.Import):
                waiting += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                waiting.append(str(node.module))
                waiting += [f"{node.module}.{alias.name}" for alias in node.names]


def find_file(module: str) -> str | None:
    """The file of a module of the checkout; None for others, and for a name in a module."""
    if module.partition(".")[0] not in FIRST_PARTY:
        return None
    path = module.replace(".", "/")
    files = (f"{path}.py", f"{path}/__init__.py")
    return next((file for file in files if (CHECKOUT / file).exists()), None)


def list_copied(dockerfile: str, stage: str) -> set[str]:
    """The files and folders that a stage copies, and all stages before it."""
    stages = re.split(r"^FROM \S+(?: AS (\w+))?$", dockerfile, flags=re.MULTILINE)
    text = "".join(stages[: stages.index(stage) + 2]).replace("\\\n", " ")
    copied = re.findall(r"^COPY (?:--\S+ )*(.+) \S+$", text, re.MULTILINE)
    return {source for sources in copied for source in sources.split()}


def list_missing(dockerfile: str, stage: str) -> set[str]:
    copied = list_copied(dockerfile, stage)
    files = {file for program in PROGRAMS[stage] for file in list_imported(program)}
    parents = {f"{folder}/__init__.py" for file in files for folder in list_folders(file)}
    return {
        file
        for file in files | parents
        if (CHECKOUT / file).exists() and not {file, *list_folders(file)} & copied
    }


def list_folders(file: str) -> list[str]:
    parts = file.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


@pytest.mark.parametrize("stage", PROGRAMS)
def test_an_image_has_all_that_its_programs_import(stage: str) -> None:
    assert list_missing((CHECKOUT / "infra/Dockerfile").read_text(), stage) == set()


def test_a_file_that_is_not_copied_is_missing() -> None:
    """The negative control."""
    dockerfile = (CHECKOUT / "infra/Dockerfile").read_text()
    without = dockerfile.replace("test_support/system/traces.py ", "")

    assert list_missing(without, "demo") == {"test_support/system/traces.py"}


def test_all_forms_of_imports_are_followed() -> None:
    """The negative control of what is read: modules that import others in each form."""
    imported = set(list_imported("scripts.tests.unit.test_demo"))

    assert {"scripts/guide.py", "scripts/demo.py", "test_support/system/clients.py"} <= imported
