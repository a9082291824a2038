"""What a release consists of, and what the workflow that publishes it can do."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from fetching.errors import Failure
from local_stack.settings import CHECKOUT
from scripts import release

WORKFLOW = CHECKOUT / ".github/workflows/release.yml"
REGISTRY = "ghcr.io/owner/hometown"
DIGEST = f"sha256:{'0' * 64}"
CHANGELOG = """# Changelog

## 0.2.0 (2026-12-01)

### Added

- A way to pay.

## [0.1.0] - 2026-11-25
- The first one.

## 0.0.9
"""


@pytest.mark.parametrize(
    ("version", "text"),
    [("0.2.0", "### Added\n\n- A way to pay.\n"), ("0.1.0", "- The first one.\n")],
)
def test_the_notes_are_the_section_of_the_version(version: str, text: str) -> None:
    assert release.find_section(CHANGELOG, version) == text


@pytest.mark.parametrize("version", ["0.0.9", "0.1", "0x1.0", "1.0.0"])
def test_without_a_section_there_is_no_release(version: str) -> None:
    with pytest.raises(Failure, match="nothing below a heading"):
        release.find_section(CHANGELOG, version)


def test_without_a_changelog_there_is_no_release(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="nothing below a heading"):
        release.read_section("0.1.0", tmp_path / "CHANGELOG.md")


@pytest.mark.parametrize("tag", ["0.1.0", "v1", "v1.2", "v1.2.3;ls", "v1.2.3-", "latest"])
def test_a_tag_of_another_form_is_refused(tag: str) -> None:
    with pytest.raises(Failure, match="the tag of a release is as"):
        release.to_version(tag)


def test_every_image_of_ours_that_compose_runs_is_published() -> None:
    images = release.find_images()
    named = {
        name
        for file in CHECKOUT.glob(release.COMPOSE_FILES)
        for name in re.findall(r"image: \$\{HOMETOWN_IMAGES:-\w+\}/([\w-]+):", file.read_text())
    }

    assert images.keys() == named
    assert images.keys() >= {"infra", "proxy", "demo"}
    for name, build in images.items():
        assert build["context"] == str(CHECKOUT), name
        assert (CHECKOUT / build["dockerfile"]).exists(), name
        # Both formats have these three under the same names.
        assert build.keys() <= {"context", "dockerfile", "target"}, name


class Programs:
    """Records the calls of docker and cosign; one that has the word `failing` fails."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.calls: list[Sequence[str]] = []
        self.given = ""

    def run(
        self, command: Sequence[str], *, input: str, **options: object
    ) -> "CompletedProcess[str]":
        self.calls.append(command)
        self.given = self.given or input
        output = f"{DIGEST}\n" if "inspect" in command else ""
        return CompletedProcess(command, int(self.failing in command), output)


def run(step: str, programs: Programs, monkeypatch: pytest.MonkeyPatch, tag: str = "v0.1.0") -> int:
    monkeypatch.setattr(subprocess, "run", programs.run)
    # An owner's name can have capital letters, a registry's cannot.
    options = ["--registry", REGISTRY.title(), "--source", "https://github.com/Owner/Hometown"]
    monkeypatch.setattr("sys.argv", ["scripts.release", step, "--tag", tag, *options])
    return release.main()


@pytest.mark.parametrize(("machine", "platform"), [("x86_64", "amd64"), ("aarch64", "arm64")])
def test_images_are_pushed_for_the_machine_with_their_origin(
    machine: str, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    programs = Programs()

    assert run("images", programs, monkeypatch) == 0

    [command] = programs.calls
    assert command[:3] == ("docker", "buildx", "bake")
    assert {"--push", f"--set=*.platform=linux/{platform}"} < set(command)
    assert {"--provenance=mode=max", "--sbom=true"} < set(command)
    targets = json.loads(programs.given)["target"]
    assert {name: target["tags"] for name, target in targets.items()} == {
        name: [f"{REGISTRY}/{name}:0.1.0-{platform}"] for name in release.find_images()
    }
    labels = targets["demo"]["labels"]
    assert labels["org.opencontainers.image.version"] == "0.1.0"
    assert labels["org.opencontainers.image.source"] == "https://github.com/Owner/Hometown"
    assert targets["demo"]["target"] == "demo"


@pytest.mark.parametrize(
    ("tag", "tags"), [("v0.1.0", ["0.1.0", "latest"]), ("v0.2.0-rc.1", ["0.2.0-rc.1"])]
)
def test_images_of_all_machines_become_one_that_is_signed_by_its_digest(
    tag: str, tags: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = Programs()

    assert run("join", programs, monkeypatch, tag) == 0

    image = f"{REGISTRY}/users-svc"
    joined = [call for call in programs.calls if "create" in call and f"{image}:" in call[-1]]
    parts = [f"{image}:{tags[0]}-{machine}" for machine in ("amd64", "arm64")]
    assert joined == [
        ("docker", "buildx", "imagetools", "create", *(f"--tag={image}:{x}" for x in tags), *parts)
    ]
    signed = [call[-1] for call in programs.calls if call[0] == "cosign"]
    assert signed == [f"{REGISTRY}/{name}@{DIGEST}" for name in release.find_images()]


def test_what_cannot_be_joined_is_not_signed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    programs = Programs(failing="create")

    assert run("join", programs, monkeypatch) == 1

    assert "docker buildx imagetools create failed" in capsys.readouterr().err
    assert len(programs.calls) == 1


def test_a_tag_that_is_not_the_version_of_the_project_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("check", Programs(), monkeypatch, "v99.0.0") == 1

    assert "v99.0.0: pyproject.toml has the version" in capsys.readouterr().err


def load_jobs() -> Mapping[str, Any]:
    jobs: Mapping[str, Any] = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    return jobs


def test_each_job_of_the_workflow_has_the_rights_that_it_needs_and_no_more() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text())
    packages = {"contents": "read", "packages": "write"}

    # YAML reads the word `on` as true.
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    assert workflow["permissions"] == {"contents": "read"}
    assert {
        name: job["permissions"] for name, job in load_jobs().items() if "permissions" in job
    } == {
        "images": packages,
        "signatures": {**packages, "id-token": "write"},
        "page": {"contents": "write"},
    }


def test_nothing_is_published_before_the_checks() -> None:
    jobs = load_jobs()
    needs = {name: job.get("needs") for name, job in jobs.items()}

    assert needs == {
        "version": None,
        "checks": "version",
        "images": "checks",
        "signatures": "images",
        "page": "signatures",
    }
    assert all(job["timeout-minutes"] <= 60 for job in jobs.values())
    assert set(jobs["checks"]["strategy"]["matrix"]["verb"]) >= {"scan", "test", "e2e-compose"}


def test_the_workflow_calls_every_step_of_a_release() -> None:
    steps = [step for job in load_jobs().values() for step in job["steps"]]
    commands = "\n".join(step.get("run", "") for step in steps)

    assert re.findall(r"^make release step=(\w+)", commands, re.MULTILINE) == [*release.STEPS]
    assert str(release.NOTES.relative_to(CHECKOUT)) in commands
    assert str(release.PACKAGES.relative_to(CHECKOUT)) in commands


def test_no_step_finds_the_login_of_the_checkout() -> None:
    steps = [step for job in load_jobs().values() for step in job["steps"]]
    checkouts = [each for each in steps if each.get("uses", "").startswith("actions/checkout@")]

    assert len(checkouts) == len(load_jobs())
    assert all(each["with"] == {"persist-credentials": False} for each in checkouts)


@pytest.mark.parametrize("file", [WORKFLOW.name, "ci.yml"])
def test_a_shell_gets_what_others_choose_by_variables_only(file: str) -> None:
    """The name of a tag or branch in the text of a command would be a part of the command."""
    text = (WORKFLOW.parent / file).read_text()
    jobs = yaml.safe_load(text)["jobs"]
    inserted = {
        expression
        for job in jobs.values()
        for step in job["steps"]
        for expression in re.findall(r"\$\{\{ *(.+?) *\}\}", step.get("run", ""))
    }

    assert {each for each in inserted if not each.startswith("matrix.")} == set()
