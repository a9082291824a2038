"""What a release publishes, and what the workflow that does it has the right to do."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from local_stack.settings import CHECKOUT
from scripts import release
from scripts.answers import ANSWERS
from scripts.changes import ChangeError
from test_support.compose_files import read_compose

WORKFLOWS = CHECKOUT / ".github/workflows"
IMAGES = "registry.example/owner/hometown"
SOURCE = "https://github.example/Owner/Hometown"
DIGEST = f"sha256:{'0' * 64}"
CHANGELOG = """# Changelog

## [0.2.0] - 2026-12-01

### Added

- A way to pay, which [a page](your-project.md#pay) describes
  on two lines: [more](https://example.com/a).
  1. `make pay`

  More about it.
- Code:

  ```
  [a](b.md)
    indented
  ```
- At once, without `[a](your-project.md)`:
  ```
  c
  ```

## [0.1.0] - 2026-11-25
- The first one.

## 0.0.9
"""


class Programs:
    """Records the calls of docker and cosign; one that has the word `failing` fails."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.calls: list[list[str]] = []
        self.given = ""
        self.mirrors: set[str] = set()

    def run(
        self, command: Sequence[str], *, input: str, env: Mapping[str, str], **options: Any
    ) -> "CompletedProcess[str]":
        if command[:2] == ("docker", "compose"):
            self.mirrors.add(env["MAVEN_REPOSITORY_URL"])
            return CompletedProcess(command, 0, self.configure(env))
        self.calls.append([*command])
        self.given = input
        output = json.dumps({"digest": DIGEST}) if "inspect" in command else ""
        return CompletedProcess(command, int(self.failing in command), output)

    def configure(self, env: Mapping[str, str]) -> str:
        """What `docker compose config` prints of two services with one image, and of another's."""
        image = f"{env['HOMETOWN_IMAGES']}/demo:{env['HOMETOWN_VERSION']}"
        build = {"context": "/checkout", "dockerfile": "infra/Dockerfile", "target": "demo"}
        services = {"demo": {"image": image, "build": build}, "trace": {"image": image}}
        return json.dumps({"services": {**services, "kafka": {"image": "apache/kafka:4"}}})


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that has a changelog, and the pages to which it leads."""
    (tmp_path / "docs").mkdir()
    for name in ("ours.md", "your-project.md"):
        (tmp_path / "docs" / name).touch()
    (tmp_path / "docs/changelog.md").write_text(CHANGELOG)
    monkeypatch.setattr(release, "CHECKOUT", tmp_path)
    return tmp_path


def run(step: str, programs: Programs, monkeypatch: pytest.MonkeyPatch, tag: str = "v0.2.0") -> int:
    monkeypatch.setattr(subprocess, "run", programs.run)
    # The owner of a repository can have capital letters, the name of an image cannot.
    options = [f"--tag={tag}", f"--images={IMAGES.title()}/", f"--source={SOURCE}"]
    monkeypatch.setattr("sys.argv", ["scripts.release", step, *options])
    return release.main()


@pytest.mark.usefixtures("checkout")
def test_the_notes_are_the_section_of_the_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With links that are right elsewhere, and a line for each item."""
    assert run("notes", Programs(), monkeypatch) == 0

    assert capsys.readouterr().out == (
        "### Added\n\n"
        f"- A way to pay, which [a page]({SOURCE}/blob/v0.2.0/docs/your-project.md#pay) describes "
        "on two lines: [more](https://example.com/a).\n"
        "  1. `make pay`\n\n  More about it.\n"
        "- Code:\n\n  ```\n  [a](b.md)\n    indented\n  ```\n"
        "- At once, without `[a](your-project.md)`:\n  ```\n  c\n  ```\n"
    )


def test_a_project_has_notes_of_its_own(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of this repository come with it, and have the same versions."""
    (checkout / ANSWERS).touch()

    assert run("notes", Programs(), monkeypatch) == 1
    assert "CHANGELOG.md has nothing below a heading `## [0.2.0]`" in capsys.readouterr().err
    (checkout / "CHANGELOG.md").write_text("## 0.2.0\n\n- [Ours](docs/ours.md)\n")
    assert run("notes", Programs(), monkeypatch) == 0
    assert capsys.readouterr().out == f"- [Ours]({SOURCE}/blob/v0.2.0/docs/ours.md)\n"


@pytest.mark.usefixtures("checkout")
def test_a_candidate_has_the_notes_of_its_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("notes", Programs(), monkeypatch, "v0.1.0-rc.1") == 0

    assert capsys.readouterr().out == "- The first one.\n"


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize("tag", ["v0.0.9", "v1.0.0", "v1.0.0-rc.1"])
def test_without_notes_there_is_no_release(
    tag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("notes", Programs(), monkeypatch, tag) == 1

    assert "docs/changelog.md has nothing below a heading" in capsys.readouterr().err


@pytest.mark.parametrize("tag", ["0.1.0", "v1", "v1.2", "v1.2.3;ls", "v1.2.3-", "latest"])
def test_a_tag_of_another_form_is_refused(tag: str) -> None:
    with pytest.raises(ChangeError, match="the tag of a release is as"):
        release.read_release(tag, IMAGES, SOURCE)


@pytest.mark.parametrize(("images", "source"), [("", SOURCE), (IMAGES, "")])
def test_what_is_missing_is_no_place_at_the_registry_of_others(images: str, source: str) -> None:
    with pytest.raises(ChangeError, match="images= and source= are missing"):
        release.read_release("v0.2.0", images, source)


@pytest.mark.parametrize(
    ("machine", "suffix"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("arm64", "arm64")]
)
def test_images_are_pushed_for_the_machine_with_their_origin(
    machine: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    programs = Programs()

    assert run("images", programs, monkeypatch) == 0

    [command] = programs.calls
    assert command[:3] == ["docker", "buildx", "bake"]
    assert {"--push", "--provenance=mode=max", "--sbom=true"} < {*command}
    assert json.loads(programs.given)["target"] == {
        "demo": {
            "context": "/checkout",
            "dockerfile": "infra/Dockerfile",
            "target": "demo",
            "tags": [f"{IMAGES}/demo:0.2.0-{suffix}"],
            "labels": {
                "org.opencontainers.image.source": SOURCE,
                "org.opencontainers.image.version": "0.2.0",
            },
        }
    }


def test_nothing_is_built_for_another_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")

    assert run("images", Programs(), monkeypatch) == 1
    assert "no image is published for riscv64" in capsys.readouterr().err


@pytest.mark.parametrize("tag", ["v0.2.0", "v0.2.0-rc.1"])
def test_images_of_all_machines_become_one_that_is_signed_by_its_digest(
    tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = Programs()

    assert run("join", programs, monkeypatch, tag) == 0

    image = f"{IMAGES}/demo:{tag[1:]}"
    created, inspected, signed, *later = programs.calls
    create = ["docker", "buildx", "imagetools", "create"]
    assert created == [*create, f"--tag={image}", f"{image}-amd64", f"{image}-arm64"]
    assert inspected[-1] == image
    assert signed == ["cosign", "sign", "--yes", "--recursive", f"{IMAGES}/demo@{DIGEST}"]
    is_latest = [*create, f"--tag={IMAGES}/demo:latest", image]
    assert later == ([is_latest] if tag == "v0.2.0" else [])


@pytest.mark.parametrize(("failing", "calls"), [("create", 1), ("inspect", 2), ("sign", 3)])
def test_what_cannot_be_joined_or_signed_is_not_the_latest(
    failing: str,
    calls: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    programs = Programs(failing=failing)

    assert run("join", programs, monkeypatch) == 1

    assert failing in capsys.readouterr().err
    assert len(programs.calls) == calls


@pytest.mark.parametrize("image", ["", "mine", f"{IMAGES}/demo:latest"])
def test_an_image_with_another_name_is_not_published(
    image: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    services = {"mine": {"build": {"context": "."}} | ({"image": image} if image else {})}
    programs = Programs()
    monkeypatch.setattr(programs, "configure", lambda env: json.dumps({"services": services}))

    assert run("images", programs, monkeypatch) == 1

    assert "the image of mine is not named as those of others" in capsys.readouterr().err
    assert programs.calls == []


def test_no_address_with_a_password_is_in_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is built with is published as well."""
    monkeypatch.setenv("MAVEN_REPOSITORY_URL", "https://mirror.example")
    programs = Programs()

    assert run("images", programs, monkeypatch) == 0
    assert programs.mirrors == {""}


def call_make(*words: str) -> "CompletedProcess[str]":
    given = ("step=notes", "tag=v9 'x", f"images={IMAGES}", f"source={SOURCE}")
    command = ("make", "--no-print-directory", *words, "release", *given)
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)


def test_the_page_begins_with_the_notes() -> None:
    """What the installation prints is not among them."""
    assert call_make("--dry-run").stdout.splitlines()[0].endswith(" scripts/setup.py >&2")


def test_make_passes_what_is_given_as_it_is() -> None:
    ended = call_make()

    assert ended.returncode != 0
    assert ended.stdout == ""
    assert "v9 'x: the tag of a release is as v1.2.3 or v1.2.3-rc.1" in ended.stderr


def test_a_program_that_is_missing_is_named() -> None:
    with pytest.raises(ChangeError, match="there is no absent-program here: install it"):
        release.call(("absent-program", "sign"))


def list_images(files: Sequence[Path]) -> set[str]:
    """The names of images of ours."""
    return {
        found[1]
        for file in files
        for service in read_compose(file)["services"].values()
        if (found := re.match(r"\$\{HOMETOWN_IMAGES:-\w+\}/([\w-]+):", service.get("image", "")))
    }


def test_every_image_of_ours_is_in_a_stack_that_is_published() -> None:
    included: list[Path] = []
    for name in release.COMPOSE_FILES:
        for each in read_compose(CHECKOUT / name)["include"]:
            paths = [each] if isinstance(each, str) else each["path"]
            included += [CHECKOUT / path for path in paths]

    images = list_images(included)
    assert images == list_images([*CHECKOUT.glob("*/compose*.yml")])
    assert images >= {"infra", "proxy", "demo", "load"}


def load_jobs(workflow: str) -> Mapping[str, Any]:
    jobs: Mapping[str, Any] = yaml.safe_load((WORKFLOWS / workflow).read_text())["jobs"]
    return jobs


def list_steps(workflow: str) -> list[Mapping[str, Any]]:
    return [step for job in load_jobs(workflow).values() for step in job.get("steps", ())]


def test_each_job_of_the_workflow_has_the_rights_that_it_needs_and_no_more() -> None:
    workflow = yaml.safe_load((WORKFLOWS / "release.yml").read_text())
    packages = {"contents": "read", "packages": "write"}

    # YAML reads the word `on` as true.
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    assert workflow["permissions"] == {"contents": "read"}
    rights = {name: job.get("permissions") for name, job in workflow["jobs"].items()}
    assert {name: each for name, each in rights.items() if each} == {
        "images": packages,
        "join": {**packages, "id-token": "write"},
        "page": {"contents": "write"},
    }


def test_nothing_is_published_before_the_checks() -> None:
    """Those of each change, which run the tests on all kinds of machines."""
    jobs = load_jobs("release.yml")

    assert {name: job.get("needs") for name, job in jobs.items()} == {
        "notes": None,
        "checks": "notes",
        "images": "checks",
        "join": "images",
        "page": "join",
    }
    assert jobs["checks"]["uses"] == "./.github/workflows/ci.yml"
    called = yaml.safe_load((WORKFLOWS / "ci.yml").read_text())
    assert "workflow_call" in called[True]
    # A group of the whole would have the name of that of the called workflow, which would end it.
    assert "concurrency" not in yaml.safe_load((WORKFLOWS / "release.yml").read_text())


def test_the_workflow_calls_every_step_of_a_release() -> None:
    commands = "\n".join(step.get("run", "") for step in list_steps("release.yml"))

    assert {*re.findall(r"^make (?:-s )?release step=(\w+)", commands, re.MULTILINE)} == {
        *release.STEPS
    }


def test_no_step_finds_the_login_of_the_checkout() -> None:
    checkouts = [
        step["with"]
        for step in list_steps("release.yml")
        if step.get("uses", "").startswith("actions/checkout@")
    ]

    assert checkouts == [{"persist-credentials": False}] * 4


@pytest.mark.parametrize("workflow", ["release.yml", "ci.yml"])
def test_a_shell_gets_what_others_choose_by_variables_only(workflow: str) -> None:
    """The name of a tag or branch in the text of a command would be a part of the command."""
    inserted = {
        expression
        for step in list_steps(workflow)
        for expression in re.findall(r"\$\{\{ *(.+?) *\}\}", step.get("run", ""))
    }

    assert {each for each in inserted if not each.startswith("matrix.")} == set()
