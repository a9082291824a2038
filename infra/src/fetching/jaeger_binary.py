"""The Jaeger binary: given, installed, cached, released, or built."""

import json
import os
import platform
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fetching.archives import download_file
from fetching.cache import disk_failure, one_at_a_time, sync, workshop
from fetching.errors import Failure
from fetching.settings import FetchSettings

MODULE = "github.com/jaegertracing/jaeger"
MODULE_VERSION = "v1.76.0"
"""The last release of version 2 that the Go module proxies have; it calls itself as follows."""

BUILT_VERSION = "2.13.0"
BUILD_SECONDS_MAX = 3600
NICENESS = "10"

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Release:
    """An official archive, which holds the stock user interface too."""

    url: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"jaeger-{self.sha256[:12]}"


RELEASES = "https://github.com/jaegertracing/jaeger/releases/download/v2.20.0"
PINNED = {
    ("Linux", "x86_64"): Release(
        f"{RELEASES}/jaeger-2.20.0-linux-amd64.tar.gz",
        "c967368ba09be356089ef7e8aab2a76d170dc007ff6ccf7925c8167ede2900d7",
    ),
    ("Darwin", "arm64"): Release(
        f"{RELEASES}/jaeger-2.20.0-darwin-arm64.tar.gz",
        "b2d21051b27f06535c288dd63e15a42d5aae653d0113695014d7e6b502736e5d",
    ),
}
"""By system and machine. Elsewhere, or out of reach of these, Jaeger is built."""


def release_of(settings: FetchSettings) -> Release | None:
    """The release that the settings name, else the pinned one of this machine, if there is one."""
    if settings.jaeger_release_url and settings.jaeger_sha256:
        return Release(settings.jaeger_release_url, settings.jaeger_sha256)
    return PINNED.get((platform.system(), platform.machine()))


def obtain(settings: FetchSettings, tell: Tell) -> Path:
    """The binary: given, installed, cached, released, or built; in this order.

    Raises:
        Failure: none of these is to be had.
    """
    if settings.jaeger_bin:
        return settings.jaeger_bin
    if installed := shutil.which("jaeger"):
        return Path(installed)
    try:
        if binary := find_cached(settings):
            return binary
        # A build takes 4 GB of memory, so a second checkout waits for the first one's binary.
        with one_at_a_time(settings.cache_dir / "jaeger.lock", "Jaeger", BUILD_SECONDS_MAX, tell):
            return find_cached(settings) or make(settings, tell)
    except OSError as error:
        raise disk_failure(error, settings.cache_dir) from error


def find_cached(settings: FetchSettings) -> Path | None:
    """What an earlier start has downloaded or built."""
    release, built = release_of(settings), settings.cache_dir / f"jaeger-{BUILT_VERSION}"
    binaries = [settings.cache_dir / release.file_name, built] if release else [built]
    return next((binary for binary in binaries if binary.exists()), None)


def make(settings: FetchSettings, tell: Tell) -> Path:
    """Download or else build, in a workshop; the rename into the cache is the last step.

    Raises:
        Failure: neither works; the message has the reason.
    """
    reasons = []
    with workshop(settings.cache_dir) as folder:
        if release := release_of(settings):
            tell("downloading")
            try:
                return keep(download(release, folder), settings.cache_dir / release.file_name)
            except Failure as failure:
                reasons.append(str(failure))
        if go := shutil.which("go"):
            tell("building")
            try:
                built = settings.cache_dir / f"jaeger-{BUILT_VERSION}"
                return keep(build(go, folder), built)
            except Failure as failure:
                reasons.append(str(failure))
        else:
            reasons.append("there is no Go to build it")
    raise Failure(
        f"no Jaeger ({'; '.join(reasons)}): install it or Go, or set JAEGER_BIN; "
        "everything else works without"
    )


def keep(binary: Path, target: Path) -> Path:
    binary.chmod(0o755)
    sync(binary)
    return binary.rename(target)


def download(release: Release, folder: Path) -> Path:
    """The binary out of a release archive.

    Raises:
        Failure: not reachable, or not the file of the checksum.
    """
    archive = download_file(release.url, release.sha256, folder / "archive.tar.gz")
    return unpack(archive, folder / "jaeger")


def unpack(archive: Path, target: Path) -> Path:
    """The one file that matters, whatever the folder in the archive is called.

    Raises:
        Failure: it is not there.
    """
    with tarfile.open(archive) as content:
        for member in content:
            packed = content.extractfile(member) if Path(member.name).name == "jaeger" else None
            if packed:
                with packed, target.open("wb") as file:
                    shutil.copyfileobj(packed, file)
                return target
    raise Failure("its archive holds no file called jaeger")


def build(go: str, folder: Path) -> Path:
    """Build inside the module's own folder: its go.mod replaces a module, so `go install` refuses.

    Without optimization, which takes a third of the build and is worth little at the load of a
    development machine.

    Raises:
        Failure: Go refused; the log has its words.
    """
    described = run([go, "mod", "download", "-json", f"{MODULE}@{MODULE_VERSION}"], folder)
    binary = folder / "jaeger"
    version_flag = f"-X {MODULE}/internal/version.latestVersion=v{BUILT_VERSION}"
    run(
        [
            *(go, "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-N -l"),
            *("-ldflags", f"-s -w {version_flag}", "-o", str(binary), "./cmd/jaeger"),
        ],
        Path(json.loads(described)["Dir"]),
    )
    return binary


def run(command: list[str], folder: Path) -> str:
    """Its standard output; what it complains about goes to the log of this process."""
    try:
        result = subprocess.run(
            ["nice", "-n", NICENESS, *command],
            cwd=folder,
            env=os.environ | {"CGO_ENABLED": "0"},
            stdout=subprocess.PIPE,
            text=True,
            timeout=BUILD_SECONDS_MAX,
            check=True,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise Failure("its build failed, see `make logs name=jaeger`") from error
    return result.stdout
