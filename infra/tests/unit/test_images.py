"""Our images are built and not pulled, and have all files that their programs import."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from local_stack.settings import CHECKOUT
from test_support.compose_files import read_compose

COMMON = CHECKOUT / "infra/compose/common.yml"
FIRST_PARTY = ("scripts", "test_support", "verification")
"""Folders of the checkout from which files are copied; packages of services are installed."""
PROGRAMS = {
    "load": ["verification.load.__main__"],
    "demo": ["scripts.demo", "scripts.trace"],
}
"""What the stages of `infra/Dockerfile` run; each is made of those before it."""


def find_policy(service: Mapping[str, Any], common: Mapping[str, Mapping[str, Any]]) -> Any:
    """The pull policy of a service: its own, or that of what it extends."""
    while "pull_policy" not in service and "extends" in service:
        extended = service["extends"]
        service = common[extended if isinstance(extended, str) else extended["service"]]
    return service.get("pull_policy")


def list_pulled(root: Path) -> list[str]:
    """Services with an image of ours that Compose would ask a registry for."""
    common = read_compose(COMMON)["services"]
    return [
        f"{file.relative_to(root)}: {name}"
        for file in sorted(root.glob("*/compose*.yml"))
        for name, service in read_compose(file)["services"].items()
        if service.get("image", "").startswith("hometown/") or "build" in service
        if find_policy(service, common) != "never"
    ]


def test_no_registry_is_asked_for_an_image_of_ours() -> None:
    """An account of that name in a registry belongs to others."""
    assert list_pulled(CHECKOUT) == []


@pytest.mark.parametrize("extended", ["server", "container"])
def test_a_service_that_a_registry_could_replace_is_found(extended: str, tmp_path: Path) -> None:
    """The negative control."""
    (tmp_path / "users-svc").mkdir()
    (tmp_path / "users-svc/compose.yml").write_text(
        f"services: {{api: {{image: hometown/a, extends: {{service: {extended}}}}}}}\n"
    )

    assert list_pulled(tmp_path) == ["users-svc/compose.yml: api"]


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
