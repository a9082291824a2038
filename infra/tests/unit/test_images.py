"""Our own images: built here unless published ones are asked for, and complete."""

import ast
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from containers.compose import Project
from containers.rolling import prepare
from containers.settings import ContainerSettings
from containers.up import up
from fetching.errors import Failure
from local_stack.settings import CHECKOUT
from scripts.release import OWN_IMAGE, ComposeLoader

POLICY = "${HOMETOWN_PULL:-never}"
COMMON = CHECKOUT / "infra/compose/common.yml"
DECLARED = CHECKOUT / "infra/compose/declared.yml"
PUBLISHED = {"HOMETOWN_IMAGES": "registry.example/hometown", "HOMETOWN_PULL": "missing"}
FIRST_PARTY = (
    *("scripts", "test_support"),
    "verification",
)
"""What the image of the demonstration copies; packages of services are installed into it."""


def read_services(file: Path) -> dict[str, dict[str, Any]]:
    services: dict[str, dict[str, Any]] = yaml.load(file.read_text(), ComposeLoader)["services"]
    return services


def find_policy(service: Mapping[str, Any], common: Mapping[str, Mapping[str, Any]]) -> Any:
    """The pull policy of a service, its own or that of what it extends."""
    while True:
        if "pull_policy" in service:
            return service["pull_policy"]
        extended = service.get("extends")
        if extended is None:
            return None
        service = common[extended if isinstance(extended, str) else extended["service"]]


def find_misnamed(root: Path) -> list[str]:
    """Services whose image a registry could replace, or would not be found in one."""
    common = read_services(COMMON) | read_services(DECLARED)
    return [
        f"{file.parent.name}/{file.name}: {name}"
        for file in sorted(root.glob("*/compose*.yml"))
        for name, service in read_services(file).items()
        if (image := service.get("image", "")) and ("hometown" in image or "build" in service)
        if not OWN_IMAGE.fullmatch(image) or find_policy(service, common) != POLICY
    ]


def test_no_registry_replaces_an_image_of_ours_unless_asked() -> None:
    assert find_misnamed(CHECKOUT) == []


@pytest.mark.parametrize(
    "service",
    [
        "image: hometown/users-svc, extends: {service: service}",
        "image: other/users-svc, build: ., extends: {service: service}",
        "image: '${HOMETOWN_IMAGES:-hometown}/a:${HOMETOWN_VERSION:-latest}', "
        "extends: {service: server}",
    ],
    ids=["name", "built", "policy"],
)
def test_a_service_that_a_registry_could_replace_is_found(service: str, tmp_path: Path) -> None:
    """The negative control."""
    (tmp_path / "users-svc").mkdir()
    (tmp_path / "users-svc/compose.yml").write_text(f"services: {{users-api: {{{service}}}}}\n")

    assert find_misnamed(tmp_path) == ["users-svc/compose.yml: users-api"]


class Engine:
    """Records the calls of Docker; all of them succeed, or those that pull fail."""

    def __init__(self, *, is_offline: bool = False) -> None:
        self.is_offline = is_offline
        self.calls: list[str] = []

    def run(self, command: Sequence[str], **options: object) -> "CompletedProcess[str]":
        words = [word for word in command[1:] if word not in ("compose", "--profile", "*")]
        self.calls.append(" ".join(words))
        output = ""
        if words[0] == "config":
            image = {"image": "one", "build": {"context": "."}}
            output = json.dumps({"services": {"users-api": image}})
        return CompletedProcess(command, int(self.is_offline and words[0] == "pull"), output, "")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    engine = Engine()
    monkeypatch.setattr(subprocess, "run", engine.run)
    return engine


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PUBLISHED.items():
        monkeypatch.setenv(name, value)


def start(folder: Path) -> None:
    up(ContainerSettings(run_dir=folder, ports="free", ports_given={}))


def replace_image(folder: Path) -> None:
    prepare(Project(settings=ContainerSettings(run_dir=folder), ports={}), "users-api")


def test_images_are_built_and_not_pulled(engine: Engine, tmp_path: Path) -> None:
    start(tmp_path)
    replace_image(tmp_path)

    [begun] = [call for call in engine.calls if call.startswith("up ")]
    assert begun.startswith("up --build --wait")
    assert "build users-api" in engine.calls
    assert not [call for call in engine.calls if call.startswith("pull")]


@pytest.mark.usefixtures("published")
def test_published_images_are_pulled_and_not_built(engine: Engine, tmp_path: Path) -> None:
    start(tmp_path)
    replace_image(tmp_path)

    [begun] = [call for call in engine.calls if call.startswith("up ")]
    assert begun.startswith("up --no-build --wait")
    assert "pull --policy missing users-api" in engine.calls
    assert not [call for call in engine.calls if call.startswith("build")]


@pytest.mark.usefixtures("published")
def test_what_cannot_be_pulled_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", Engine(is_offline=True).run)

    with pytest.raises(Failure, match="cannot be pulled"):
        replace_image(tmp_path)


@pytest.mark.parametrize("missing", sorted(PUBLISHED))
def test_half_of_the_settings_is_refused(
    missing: str, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code of the checkout would have the name of a published image, or the other way around."""
    for name in PUBLISHED.keys() - {missing}:
        monkeypatch.setenv(name, PUBLISHED[name])

    with pytest.raises(Failure, match="both HOMETOWN_IMAGES and HOMETOWN_PULL"):
        start(tmp_path)
    assert not [call for call in engine.calls if call.startswith("up ")]


def imported_files(module: str) -> Iterator[str]:
    """The files of the checkout that a module is made of, with those that it imports."""
    waiting, seen = [module], set()
    while waiting:
        file = f"{waiting.pop().replace('.', '/')}.py"
        if file in seen:
            continue
        seen.add(file)
        yield file
        for node in ast.walk(ast.parse((CHECKOUT / file).read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(FIRST_PARTY):
                waiting.append(str(node.module))


def test_the_image_of_the_demonstration_has_all_that_it_imports() -> None:
    dockerfile = (CHECKOUT / "infra/Dockerfile").read_text().replace("\\\n", " ")
    copied = {
        source
        for sources in re.findall(r"^COPY (.+) \S+$", dockerfile, re.MULTILINE)
        for source in sources.split()
    }

    files = {*imported_files("scripts.demo")}

    assert "test_support/system/sample.py" in files
    assert files | {"test_support/system/sample"} <= copied
    assert {f"{Path(file).parent}/__init__.py" for file in files} <= copied
