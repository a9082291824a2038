"""A release: its check, its images and its notes, as `.github/workflows/release.yml` calls them.

make release step=check tag=v0.1.0
"""

import argparse
import json
import platform
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from fetching.errors import Failure
from local_stack.progress import complain, tell
from local_stack.settings import CHECKOUT

Json = dict[str, Any]

COMPOSE_FILES = "*/compose*.yml"
OWN_IMAGE = re.compile(r"\$\{HOMETOWN_IMAGES:-hometown\}/([\w-]+):\$\{HOMETOWN_VERSION:-latest\}")
TAG = re.compile(r"v(\d+\.\d+\.\d+(-[\w.]+)?)")
"""The version, and what makes it a candidate of one."""
PLATFORMS = {"x86_64": "amd64", "aarch64": "arm64"}
"""What a registry calls a machine, by what the machine calls itself."""
BUILD_SECONDS_MAX = 3_000
CALL_SECONDS_MAX = 300
FOLDER = CHECKOUT / ".run/release"
NOTES, PACKAGES = FOLDER / "notes.md", FOLDER / "python-packages.cdx.json"


class ComposeLoader(yaml.SafeLoader):
    """Compose has tags of its own, which images do not depend on."""


for tag in ("!reset", "!override"):
    ComposeLoader.add_constructor(tag, lambda loader, node: None)


def main() -> int:
    """0 if all went well, 1 with one line on standard error if not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("--tag", required=True, help="of git, such as v0.1.0")
    parser.add_argument("--registry", default="", help="and the path in it: ghcr.io/owner/name")
    parser.add_argument("--source", default="", help="where the code of the images is")
    arguments = parser.parse_args()
    try:
        STEPS[arguments.step](arguments)
    except Failure as failure:
        complain(str(failure))
        return 1
    return 0


def check(arguments: argparse.Namespace) -> None:
    """The tag is the version of the project, and the changelog says what is new.

    Raises:
        Failure: one of them is not so.
    """
    version = to_version(arguments.tag)
    declared = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["version"]
    if version != declared:
        raise Failure(f"{arguments.tag}: pyproject.toml has the version {declared}")
    read_section(version)
    tell(f"{arguments.tag} publishes {', '.join(find_images())}")


def push_images(arguments: argparse.Namespace) -> None:
    """Build all images for the platform of this machine, and push them with what they consist of.

    All Python files are compiled in the build, which an emulated machine would do slowly.
    """
    machine = PLATFORMS[platform.machine()]
    tag = f"{to_version(arguments.tag)}-{machine}"
    bake = to_bake(find_images(), to_registry(arguments), tag, arguments.source)
    options = (f"--set=*.platform=linux/{machine}", "--provenance=mode=max", "--sbom=true")
    call(
        ("docker", "buildx", "bake", "--file=-", "--push", *options),
        given=json.dumps(bake),
        seconds_max=BUILD_SECONDS_MAX,
    )


def join_images(arguments: argparse.Namespace) -> None:
    """Make one image of those of all platforms, by reference, and sign it by its digest."""
    version = to_version(arguments.tag)
    tags = [version] if "-" in version else [version, "latest"]
    for name in find_images():
        image = f"{to_registry(arguments)}/{name}"
        names = [f"--tag={image}:{tag}" for tag in tags]
        parts = [f"{image}:{version}-{machine}" for machine in PLATFORMS.values()]
        call(("docker", "buildx", "imagetools", "create", *names, *parts))
        digest_only = ("--format", "{{.Manifest.Digest}}", f"{image}:{version}")
        digest = call(("docker", "buildx", "imagetools", "inspect", *digest_only)).strip()
        call(("cosign", "sign", "--yes", "--recursive", f"{image}@{digest}"))
        tell(f"{image}:{version} is {digest}")


def write_notes(arguments: argparse.Namespace) -> None:
    """What the page of the release shows, and all Python packages of the lock file."""
    version = to_version(arguments.tag)
    FOLDER.mkdir(parents=True, exist_ok=True)
    NOTES.write_text(read_section(version))
    options = ("--frozen", "--all-packages", "--no-dev", "--preview-features=sbom-export")
    packages = call((".tools/bin/uv", "export", *options, "--format=cyclonedx1.5"))
    PACKAGES.write_text(packages)
    tell(f"wrote {NOTES} and {PACKAGES}")


def to_version(tag: str) -> str:
    """Raises Failure if the tag is not that of a release."""
    found = TAG.fullmatch(tag)
    if not found:
        raise Failure(f"{tag}: the tag of a release is as v1.2.3 or v1.2.3-rc.1")
    return found[1]


def to_registry(arguments: argparse.Namespace) -> str:
    """Registries know small letters only, owners of repositories others as well."""
    registry: str = arguments.registry.lower()
    if not registry:
        raise Failure("registry= is missing, such as ghcr.io/owner/name")
    return registry


def read_section(version: str, file: Path = CHECKOUT / "CHANGELOG.md") -> str:
    """Raises Failure if there is no changelog, or nothing in it about the version."""
    return find_section(file.read_text() if file.exists() else "", version)


def find_section(changelog: str, version: str) -> str:
    """What the changelog has below the heading of a version. Raises Failure if there is nothing."""
    heading = rf"^## \[?v?{re.escape(version)}\]?(?:[ (][^\n]*)?$"
    found = re.search(rf"{heading}\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    text = found[1].strip() if found else ""
    if not text:
        raise Failure(f"CHANGELOG.md has nothing below a heading `## {version}`")
    return f"{text}\n"


def find_images(root: Path = CHECKOUT) -> Mapping[str, Json]:
    """How each image of ours is built, by its name, as the Compose files have it."""
    builds = {}
    for file in sorted(root.glob(COMPOSE_FILES)):
        for service in yaml.load(file.read_text(), ComposeLoader)["services"].values():  # noqa: S506
            if service and "build" in service:
                image = OWN_IMAGE.fullmatch(service["image"])
                assert image, f"{file}: {service['image']}"
                context = (file.parent / service["build"]["context"]).resolve()
                builds[image[1]] = {**service["build"], "context": str(context)}
    return builds


def to_bake(images: Mapping[str, Json], registry: str, tag: str, source: str) -> Json:
    """What `docker buildx bake` reads: a target for each image."""
    labels = {
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.source": source,
        "org.opencontainers.image.version": tag.rpartition("-")[0],
    }
    targets = {
        name: {**build, "tags": [f"{registry}/{name}:{tag}"], "labels": labels}
        for name, build in images.items()
    }
    return {"group": {"default": {"targets": [*targets]}}, "target": targets}


def call(command: Sequence[str], *, given: str = "", seconds_max: float = CALL_SECONDS_MAX) -> str:
    """What a program writes to standard output. Raises Failure if it fails or takes too long."""
    try:
        ended = subprocess.run(
            command,
            cwd=CHECKOUT,
            input=given,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=seconds_max,
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise Failure(str(error)) from error
    if ended.returncode:
        raise Failure(f"{' '.join(command[:4])} failed: correct what is printed above")
    return ended.stdout


STEPS = {"check": check, "images": push_images, "join": join_images, "notes": write_notes}
"""In the order of a release."""

if __name__ == "__main__":
    sys.exit(main())
