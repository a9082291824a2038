"""Our images are built unless published ones are chosen, and have what their programs import."""

import ast
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from containers.compose import Project
from containers.rolling import prepare
from containers.settings import ContainerSettings
from containers.up import up
from fetching.errors import Failure
from local_stack.settings import CHECKOUT
from test_support.compose_files import read_compose

COMMON = CHECKOUT / "infra/compose/common.yml"
OWN_IMAGE = re.compile(r"\$\{HOMETOWN_IMAGES:-hometown\}/[\w-]+:\$\{HOMETOWN_VERSION:-latest\}")
IF_PUBLISHED = "${HOMETOWN_IMAGES:+-published}"
PUBLISHED = "registry.example/hometown"
FIRST_PARTY = ("scripts", "test_support", "verification")
"""Folders of the checkout from which files are copied; packages of services are installed."""
PROGRAMS = {
    "load": ["verification.load.__main__"],
    "demo": ["scripts.demo", "scripts.trace"],
}
"""What the stages of `infra/Dockerfile` run; each is made of those before it."""


def find_policy(
    service: Mapping[str, Any], common: Mapping[str, Mapping[str, Any]], published: str
) -> Any:
    """The pull policy of a service, its own or that of what it extends; None has Compose's.

    `published` stands for what the setting with the place of published images adds to a name.
    """
    while "pull_policy" not in service and "extends" in service:
        extended = service["extends"]
        name = extended if isinstance(extended, str) else extended["service"]
        service = common[name.replace(IF_PUBLISHED, published)]
    return service.get("pull_policy")


def list_unsafe(root: Path) -> list[str]:
    """Services with an image of ours that a registry could replace, or that has another name."""
    common = read_compose(COMMON)["services"]
    return [
        f"{file.relative_to(root)}: {name}"
        for file in sorted(root.glob("*/compose*.yml"))
        for name, service in read_compose(file)["services"].items()
        if "hometown" in service.get("image", "").lower() or "build" in service
        if not OWN_IMAGE.fullmatch(service.get("image", ""))
        or find_policy(service, common, "") != "never"
        or find_policy(service, common, "-published") != "missing"
    ]


def test_a_registry_is_asked_for_published_images_of_ours_alone() -> None:
    """An account of our name in a registry belongs to others."""
    assert list_unsafe(CHECKOUT) == []


@pytest.mark.parametrize(
    "service",
    [
        *("image: hometown/a, extends: {service: service}", "image: a, build: ., extends: service"),
        *("image: '{}', extends: server", "image: '{}', extends: container"),
        *("image: '{}', pull_policy: never", "image: '{}', extends: own", "build: ."),
    ],
    ids=["name", "built", "server", "container", "never", "own", "unnamed"],
)
def test_a_service_that_a_registry_could_replace_is_found(service: str, tmp_path: Path) -> None:
    """The negative control."""
    (tmp_path / "users-svc").mkdir()
    image = "${HOMETOWN_IMAGES:-hometown}/a:${HOMETOWN_VERSION:-latest}"
    (tmp_path / "users-svc/compose.yml").write_text(
        f"services: {{api: {{{service.replace('{}', image)}}}}}\n"
    )

    assert list_unsafe(tmp_path) == ["users-svc/compose.yml: api"]


class Engine:
    """Records the calls of Docker; all of them succeed, or those that pull fail."""

    def __init__(self, *, is_offline: bool = False) -> None:
        self.is_offline = is_offline
        self.calls: list[str] = []

    def run(self, command: Sequence[str], **options: Any) -> "CompletedProcess[str]":
        words = [word for word in command[1:] if word not in ("compose", "--profile", "*")]
        self.calls.append(" ".join(words))
        image = f"{options['env']['HOMETOWN_IMAGES'] or 'hometown'}/users-svc"
        services = {
            "users-api": {"image": image, "build": {"context": "."}},
            "kafka": {"image": "apache/kafka:4"},
        }
        output = json.dumps({"services": services}) if words[0] == "config" else ""
        return CompletedProcess(command, int(self.is_offline and words[0] == "pull"), output, "")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    engine = Engine()
    monkeypatch.setattr(subprocess, "run", engine.run)
    return engine


def start_and_replace(folder: Path, images: str) -> None:
    settings = ContainerSettings(run_dir=folder, ports="free", ports_given={}, images=images)
    up(settings)
    project = Project(settings=settings, ports={})
    prepare(project, "kafka")
    prepare(project, "users-api")


def test_images_are_built_and_not_pulled(engine: Engine, tmp_path: Path) -> None:
    start_and_replace(tmp_path, "")

    [begun] = [call for call in engine.calls if call.startswith("up ")]
    assert begun.startswith("up --build --wait")
    assert [call for call in engine.calls if call.startswith("build")] == ["build users-api"]
    assert not [call for call in engine.calls if call.startswith("pull")]


def test_published_images_are_pulled_and_not_built(engine: Engine, tmp_path: Path) -> None:
    """Code of the checkout would have the name of a release. A server keeps its image."""
    start_and_replace(tmp_path, PUBLISHED)

    [begun] = [call for call in engine.calls if call.startswith("up ")]
    assert begun.startswith("up --no-build --wait")
    assert [call for call in engine.calls if call.startswith("pull")] == ["pull users-api"]
    assert not [call for call in engine.calls if call.startswith("build")]


def test_what_cannot_be_pulled_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(is_offline=True)
    monkeypatch.setattr(subprocess, "run", engine.run)

    with pytest.raises(Failure, match="pull users-api` failed: nothing is replaced"):
        start_and_replace(tmp_path, PUBLISHED)
    assert engine.calls[-1].startswith("pull")


def test_the_settings_that_choose_images_reach_compose(tmp_path: Path) -> None:
    settings = ContainerSettings(run_dir=tmp_path, ports_given={}, images=PUBLISHED)

    assert Project(settings=settings, ports={}).environment["HOMETOWN_IMAGES"] == PUBLISHED


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
