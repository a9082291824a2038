"""A release publishes images, and they are pulled where they are chosen; no other one is."""

import platform
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from containers.compose import Project
from containers.settings import ContainerSettings
from containers.up import down
from scripts import release
from scripts.release import Release
from test_support.registry import Registry, registry

SERVICE = "secrets"
"""It needs no other one."""
VERSION = "9.9.9"
TESTED = Release(tag=f"v{VERSION}", images="", source="https://code.example/hometown")
COSIGN = """#!/bin/sh
echo "$@" > "${0%/*}/signed"
"""


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the arguments of the last call of `cosign`, whose service is not here."""
    return tmp_path_factory.mktemp("bin") / "signed"


@pytest.fixture(scope="module")
def published(signed: Path) -> Iterator[Registry]:
    """A registry with the image of `SERVICE`, as the workflow of a release publishes it."""
    cosign = signed.parent / "cosign"
    cosign.write_text(COSIGN)
    cosign.chmod(0o755)
    find_all = release.find_builds

    def find_one(wanted: Release, machine: str = "") -> Mapping[str, Mapping[str, Any]]:
        builds = find_all(wanted, machine)
        return {image: build for image, build in builds.items() if "/infra:" in image}

    with registry() as served:
        wanted = replace(TESTED, images=f"{served.address}/hometown")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", str(signed.parent), prepend=":")
            patch.setattr(release, "find_builds", find_one)
            # A list of packages needs a builder in a container, which has another 127.0.0.1.
            patch.setattr(release, "BUILD_OPTIONS", ("--push",))
            patch.setenv("BUILDX_BUILDER", "default")
            here = platform.machine()
            patch.setattr(release, "MACHINES", {here: release.MACHINES[here]})
            try:
                release.push_images(wanted)
                release.join_images(wanted)
            finally:
                remove_images(wanted.images)
        yield served


@pytest.fixture
def project(published: Registry, tmp_path: Path) -> Iterator[Project]:
    """A project of its own, which is gone afterwards, with what it has pulled or built."""
    published.read.clear()
    settings = ContainerSettings(
        run_dir=tmp_path / "run", ports_given={}, images=f"{published.address}/hometown"
    )
    project = Project(settings=settings, ports={})
    yield project
    ended = down(project, "--volumes")
    remove_images(settings.images)
    assert ended == 0


def list_images(images: str) -> list[str]:
    """The images of this machine under the names of published ones."""
    pattern = f"--filter=reference={images}/*"
    command = ("docker", "images", pattern, "--format={{.Repository}}:{{.Tag}}")
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def remove_images(images: str) -> None:
    for image in list_images(images):
        subprocess.run(("docker", "rmi", image), check=True, capture_output=True)


def test_what_is_published_is_signed_by_its_digest(published: Registry, signed: Path) -> None:
    image = published.stored[f"/v2/hometown/infra/manifests/{VERSION}"]

    assert published.stored["/v2/hometown/infra/manifests/latest"] == image
    *options, name = signed.read_text().split()
    assert options == ["sign", "--yes", "--recursive"]
    assert name == f"{published.address}/hometown/infra@{image.digest}"


@pytest.mark.smoke
def test_a_published_image_is_pulled_and_runs(
    project: Project, published: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMETOWN_VERSION", VERSION)

    assert project.call("up", "--no-build", SERVICE) == 0

    container = project.containers()[SERVICE]
    assert container.exit_status == 0
    image = project.docker("inspect", "--format", "{{.Config.Image}}", container.id)
    assert image.strip() == f"{project.settings.images}/infra:{VERSION}"
    labels = project.docker("inspect", "--format", "{{json .Config.Labels}}", container.id)
    assert f'"org.opencontainers.image.source":"{TESTED.source}"' in labels
    assert f"/v2/hometown/infra/manifests/{VERSION}" in published.read


def test_what_is_not_published_is_not_replaced_by_an_image_of_the_checkout(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMETOWN_VERSION", "0.0.0")

    assert project.call("up", "--no-build", SERVICE) != 0
    assert list_images(project.settings.images) == []


def test_compose_alone_builds_what_is_not_published(
    project: Project, published: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMETOWN_VERSION", "0.0.0")

    assert project.call("up", SERVICE) == 0
    assert list_images(project.settings.images) == [f"{project.settings.images}/infra:0.0.0"]
    assert "/v2/hometown/infra/manifests/0.0.0" in published.read


def test_without_the_setting_no_registry_is_asked(project: Project) -> None:
    """Also where the image is not here yet."""
    built = Project(settings=project.settings.model_copy(update={"images": ""}), ports={})

    policies = {
        service["image"]: service.get("pull_policy")
        for service in built.declared().values()
        if "hometown" in service["image"]
    }
    assert len(policies) > 1
    assert {*policies.values()} == {"never"}
