"""Publish the images of a release and print its notes, as `.github/workflows/release.yml` does.

make release step=images tag=v0.2.0 images=ghcr.io/owner/name source=https://github.com/owner/name
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from local_stack.progress import tell
from scripts.answers import ANSWERS
from scripts.changes import CHECKOUT, ChangeError, run_command
from scripts.documentation.pages import Checkout
from scripts.upgrade.changelog import FILE, list_sections

COMPOSE_FILES = ("docker-compose.yml", "docker-compose.cluster.yml")
"""Each image of ours is in one of them."""
OWN_CHANGELOG = "CHANGELOG.md"
"""Of a project that was made from this repository, whose changelog comes with it."""
TAG = re.compile(r"v\d+\.\d+\.\d+(-[\w.]+)?")
WRAPPED = re.compile(
    r"(?P<code>^ *(?P<fence>```|~~~).*?^ *(?P=fence))"
    r"|(?<!\n)\n +(?![-*+] |\d+[.)] |```|~~~|\s|$)",
    re.DOTALL | re.MULTILINE,
)
"""Where a line of an item goes on; or code, in which none does."""
MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
"""What a registry calls a machine, by what the machine calls itself."""
BUILD_OPTIONS = ("--push", "--sbom=true", "--provenance=mode=max")
BUILD_SECONDS_MAX = 3_000
CALL_SECONDS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A version, the folder of a registry that has its images, and where its code is."""

    tag: str
    images: str
    source: str

    @property
    def version(self) -> str:
        return self.tag.removeprefix("v")

    @property
    def is_candidate(self) -> bool:
        return "-" in self.version


def main() -> int:
    """0 if all went well, 1 with one line on standard error if not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("--tag", required=True, help="of git, such as v0.2.0")
    parser.add_argument("--images", required=True, help="such as ghcr.io/owner/name")
    parser.add_argument("--source", required=True, help="such as https://github.com/owner/name")
    given = parser.parse_args()

    def publish() -> int:
        STEPS[given.step](read_release(given.tag, given.images, given.source))
        return 0

    return run_command(publish, interrupted="what was pushed stays: call it again")


def read_release(tag: str, images: str, source: str) -> Release:
    """Raises ChangeError if the tag is not that of a release, or if something is missing."""
    if not TAG.fullmatch(tag):
        raise ChangeError(f"{tag}: the tag of a release is as v1.2.3 or v1.2.3-rc.1")
    if not (images and source):
        raise ChangeError("images= and source= are missing: `make help` shows examples")
    # The owner of a repository can have capital letters, the name of an image cannot.
    return Release(tag=tag, images=images.lower().rstrip("/"), source=source.rstrip("/"))


def print_notes(release: Release) -> None:
    """Print what the changelog says about the version, or about the one that a candidate is of.

    Raises:
        ChangeError: it says nothing.
    """
    file = OWN_CHANGELOG if (CHECKOUT / ANSWERS).exists() else FILE
    version, _, _ = release.version.partition("-")
    path = CHECKOUT / file
    sections = dict(list_sections(path.read_text() if path.exists() else ""))
    text = sections.get(version, "").strip()
    if not text:
        raise ChangeError(f"{file} has nothing below a heading `## [{version}]`")
    tagged = Checkout(CHECKOUT, [], f"{release.source}/blob/{release.tag}", {file: text})
    # A page of a release shows each line as one of its own.
    tell(WRAPPED.sub(lambda found: found["code"] or " ", tagged.read_page(file).text))


def push_images(release: Release) -> None:
    """Build all images for the kind of this machine, and push them with what they consist of.

    All Python files are compiled in the build, which an emulated machine would do slowly.

    Raises:
        ChangeError: a build or a push fails, or no image is published for this kind.
    """
    machine = MACHINES.get(platform.machine())
    if machine is None:
        raise ChangeError(f"no image is published for {platform.machine()}")
    labels = {
        "org.opencontainers.image.source": release.source,
        "org.opencontainers.image.version": release.version,
    }
    targets = {
        image.rpartition("/")[2].partition(":")[0]: {**build, "tags": [image], "labels": labels}
        for image, build in find_builds(release, machine).items()
    }
    bake = {"group": {"default": {"targets": [*targets]}}, "target": targets}
    call(
        ("docker", "buildx", "bake", "--file=-", *BUILD_OPTIONS),
        given=json.dumps(bake),
        seconds_max=BUILD_SECONDS_MAX,
    )


def join_images(release: Release) -> None:
    """Make one image of those of all kinds of machines, by reference, and sign it by its digest.

    When all of them are signed, they are the latest, unless they are candidates.

    Raises:
        ChangeError: an image of a machine is missing, or one cannot be signed.
    """
    tools = ("docker", "buildx", "imagetools")
    images = {image: image.rpartition(":")[0] for image in find_builds(release)}
    for image, name in images.items():
        parts = sorted({f"{image}-{machine}" for machine in MACHINES.values()})
        call((*tools, "create", f"--tag={image}", *parts))
        joined = json.loads(call((*tools, "inspect", "--format={{json .Manifest}}", image)))
        call(("cosign", "sign", "--yes", "--recursive", f"{name}@{joined['digest']}"))
        tell(f"{image} is {joined['digest']}")
    for image, name in images.items():
        if not release.is_candidate:
            call((*tools, "create", f"--tag={name}:latest", image))


def find_builds(release: Release, machine: str = "") -> Mapping[str, Mapping[str, Any]]:
    """Return how each image of ours is built, by its name, as the Compose files have it.

    Args:
        machine: the kind of machines whose images these are; none: of all kinds.

    Raises:
        ChangeError: Compose refuses a file, or an image has a name that is not of the release.
    """
    version = f"{release.version}-{machine}" if machine else release.version
    variables = {
        "HOMETOWN_IMAGES": release.images,
        "HOMETOWN_VERSION": version,
        "MAVEN_REPOSITORY_URL": "",  # the provenance would have it, with its password
    }
    builds: dict[str, Mapping[str, Any]] = {}
    for file in COMPOSE_FILES:
        options = (f"--file={file}", "--profile=*", "config", "--format=json")
        declared = json.loads(call(("docker", "compose", *options), variables=variables))
        for name, service in declared["services"].items():
            if "build" in service:
                image = service.get("image", "")
                if not (image.startswith(f"{release.images}/") and image.endswith(f":{version}")):
                    raise ChangeError(
                        f"{file}: the image of {name} is not named as those of others"
                    )
                builds[image] = service["build"]
    return builds


def call(
    command: Sequence[str],
    *,
    given: str = "",
    variables: Mapping[str, str] = MappingProxyType({}),
    seconds_max: float = CALL_SECONDS_MAX,
) -> str:
    """Return what a program writes to standard output.

    Raises:
        ChangeError: it fails, or is not there.
        TimeoutExpired: it takes longer than `seconds_max`.
    """
    try:
        ended = subprocess.run(
            command,
            cwd=CHECKOUT,
            env={**os.environ, **variables},
            input=given,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=seconds_max,
        )
    except FileNotFoundError:
        raise ChangeError(f"there is no {command[0]} here: install it") from None
    if ended.returncode:
        raise ChangeError(f"{' '.join(command[:4])} failed: correct what is printed above")
    return ended.stdout


STEPS: Mapping[str, Callable[[Release], None]] = {
    "notes": print_notes,
    "images": push_images,
    "join": join_images,
}

if __name__ == "__main__":
    sys.exit(main())
