"""What is run of others is fixed: actions by commit, each image under one reference everywhere."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from fetching import browser, jaeger_binary
from fetching.jars import JarList
from local_stack.settings import CHECKOUT
from scripts import setup

IMAGE_FILES = (
    "**/Dockerfile",
    "**/*compose*.yml",
    "infra/k8s/*.yaml",
)
IMAGE = re.compile(r"^ *(?:FROM|image:) ([\w./-]+):([\w.@:-]+)", re.MULTILINE)
OWN = "hometown/"

PINNED = re.compile(r"[\w/-]+@[0-9a-f]{40}  # v\d+(\.\d+)+")


def test_every_action_is_pinned_to_a_commit_and_names_its_version() -> None:
    files = [*CHECKOUT.glob(".github/**/*.yml")]
    used = [use for file in files for use in re.findall(r"uses: (.+)", file.read_text())]
    foreign = [use for use in used if not use.startswith("./")]

    assert foreign
    assert [use for use in foreign if not PINNED.fullmatch(use)] == []


def find_images(root: Path) -> dict[str, dict[str, set[str]]]:
    """The tags and digests of each image of others, and the files that have them."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for pattern in IMAGE_FILES:
        for file in root.glob(pattern):
            if not file.relative_to(root).parts[0].startswith("."):
                for name, version in IMAGE.findall(file.read_text()):
                    if not name.startswith(OWN):
                        found[name][version].add(str(file.relative_to(root)))
    return found


def test_every_image_has_one_reference() -> None:
    """A digest in one file and a tag in another would be two images."""
    images = find_images(CHECKOUT)

    assert images.keys() == {
        *("python", "postgres", "apache/kafka", "jaegertracing/jaeger"),
        *("prom/prometheus", "grafana/grafana"),
        "ghcr.io/astral-sh/uv",
    }
    assert {name: files for name, files in images.items() if len(files) > 1} == {}


@pytest.mark.parametrize("line", ["FROM python:3.12-slim", "    image: python:3.11@sha256:12"])
def test_another_reference_of_the_same_image_is_found(line: str, tmp_path: Path) -> None:
    """The negative control."""
    (tmp_path / "Dockerfile").write_text("FROM python:3.11 AS base\n")
    (tmp_path / "compose.yml").write_text(f"{line}\n")

    assert len(find_images(tmp_path)["python"]) == 2


def test_updates_are_proposed_for_every_file_with_an_image() -> None:
    """Renovate finds Dockerfiles and Compose files by itself, and manifests by this pattern."""
    config = json.loads((CHECKOUT / "renovate.json").read_text())
    [pattern] = config["kubernetes"]["managerFilePatterns"]
    manifests = {
        file
        for versions in find_images(CHECKOUT).values()
        for files in versions.values()
        for file in files
        if file.endswith(".yaml")
    }

    assert manifests
    assert all(re.search(pattern.strip("/"), file) for file in manifests)
    assert "docker:pinDigests" in config["extends"]
    assert set(config["enabledManagers"]) >= {
        *("dockerfile", "docker-compose", "kubernetes", "github-actions", "pep621"),
        *("gomod", "custom.regex"),
    }


def find_pins(manager: dict[str, Any], files: Iterable[Path]) -> list[tuple[str, str, str]]:
    """File, name and version of what a custom manager finds there, as Renovate reads it."""
    patterns = [re.compile(each.strip("/")) for each in manager["managerFilePatterns"]]
    matches = [re.compile(each.replace("(?<", "(?P<")) for each in manager["matchStrings"]]
    return [
        (name, to_dependency(manager, found.groupdict()), found["currentValue"])
        for file in files
        if any(pattern.search(name := str(file.relative_to(CHECKOUT))) for pattern in patterns)
        for match in matches
        for found in match.finditer(file.read_text())
    ]


def to_dependency(manager: dict[str, Any], groups: dict[str, str]) -> str:
    template = str(manager.get("depNameTemplate", "{{{depName}}}"))
    return re.sub(r"\{\{\{(\w+)\}\}\}", lambda field: groups[field[1]], template)


def test_updates_are_proposed_for_every_jar_and_binary() -> None:
    config = json.loads((CHECKOUT / "renovate.json").read_text())
    lists = [*CHECKOUT.glob("infra/*/jars.txt"), *CHECKOUT.glob("benchmarks/*/*/jars.txt")]
    code = [*CHECKOUT.glob("infra/src/fetching/*.py"), *CHECKOUT.glob("scripts/*.py")]

    found = [pin for each in config["customManagers"] for pin in find_pins(each, lists + code)]

    jars = {
        (str(path.relative_to(CHECKOUT)), f"{jar.organisation}:{jar.name}", jar.version)
        for path in lists
        for jar in JarList(name=path.parent.name, path=path).read()
    }
    assert len(lists) >= 3
    assert {pin for pin in found if pin[0].endswith("jars.txt")} == jars
    jaeger = jaeger_binary.RELEASES.rpartition("/v")[2]
    assert sorted(pin for pin in found if not pin[0].endswith("jars.txt")) == [
        ("infra/src/fetching/browser.py", browser.PACKAGE, browser.VERSION),
        *[("infra/src/fetching/jaeger_binary.py", "jaegertracing/jaeger", jaeger)]
        * (1 + len(jaeger_binary.PINNED)),
        ("scripts/setup.py", "uv", setup.UV_VERSION),
    ]


def test_one_version_of_uv_is_used_everywhere() -> None:
    assert find_images(CHECKOUT)["ghcr.io/astral-sh/uv"].keys() == {setup.UV_VERSION}
