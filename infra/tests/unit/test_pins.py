"""What is run of others is fixed: actions by commit, each image under one reference everywhere."""

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from local_stack.settings import CHECKOUT

IMAGE_FILES = ("**/Dockerfile", "**/*compose*.yml", "infra/k8s/*.yaml")
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
        "ghcr.io/astral-sh/uv",
    }
    assert {name: files for name, files in images.items() if len(files) > 1} == {}


@pytest.mark.parametrize("line", ["FROM python:3.12-slim", "    image: python:3.11@sha256:12"])
def test_another_reference_of_the_same_image_is_found(line: str, tmp_path: Path) -> None:
    """The negative control."""
    (tmp_path / "Dockerfile").write_text("FROM python:3.11 AS base\n")
    (tmp_path / "compose.yml").write_text(f"{line}\n")

    assert len(find_images(tmp_path)["python"]) == 2


def test_updates_are_proposed_for_images_actions_and_packages() -> None:
    """Renovate finds Dockerfiles and Compose files by itself."""
    config = json.loads((CHECKOUT / "renovate.json").read_text())

    assert "docker:pinDigests" in config["extends"]
    assert set(config["enabledManagers"]) >= {
        *("dockerfile", "docker-compose", "github-actions", "pep621")
    }


def test_updates_are_proposed_for_every_manifest_of_kubernetes() -> None:
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
    assert "kubernetes" in config["enabledManagers"]
