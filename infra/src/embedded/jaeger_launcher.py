"""Find, fetch or build the Jaeger binary, then become it: `python -m embedded.jaeger_launcher`.

It runs under the supervisor, in the background of everything else, because a build takes minutes.
"""

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx

from embedded.cache import disk_failure, workshop
from embedded.errors import Failure
from embedded.jaeger import CONFIG, note_path, write_note
from embedded.run_folder import RunFolder
from embedded.settings import Settings
from embedded.supervision import STEADY_SECONDS

MODULE = "github.com/jaegertracing/jaeger"
MODULE_VERSION = "v1.76.0"
"""The last release of version 2 that the Go module proxies have; it calls itself as follows."""

VERSION = "2.13.0"
BUILD_SECONDS_MAX = 3600
DOWNLOAD_SECONDS_MAX = 600
READ_SECONDS_MAX = 30
NICENESS = "10"
LOCK_POLL_SECONDS = 1

Tell = Callable[[str], None]


def obtain(settings: Settings, tell: Tell) -> Path:
    """The binary: given, installed, cached, released, or built; in this order.

    Raises:
        Failure: none of these is to be had, or one failed on the way.
    """
    if settings.jaeger_bin:
        return settings.jaeger_bin
    if installed := shutil.which("jaeger"):
        return Path(installed)
    cached = settings.cache_dir / f"jaeger-{VERSION}"
    if cached.exists():
        return cached
    try:
        with one_at_a_time(settings.cache_dir, tell):
            if not cached.exists():
                make(settings, cached, tell)
    except OSError as error:
        raise disk_failure(error, settings.cache_dir) from error
    return cached


@contextmanager
def one_at_a_time(cache_dir: Path, tell: Tell) -> Iterator[None]:
    """A build takes 4 GB of memory, so a second checkout waits for the first one's binary."""
    cache_dir.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + BUILD_SECONDS_MAX
    with (cache_dir / "jaeger.lock").open("w") as lock:
        while not taken(lock):
            tell("waiting for the build of another checkout")
            if time.monotonic() > deadline:
                raise Failure("another checkout does not finish its build of Jaeger: stop it there")
            time.sleep(LOCK_POLL_SECONDS)
        yield


def taken(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def make(settings: Settings, target: Path, tell: Tell) -> None:
    """Download or build in a workshop; the rename is the last step."""
    with workshop(settings.cache_dir) as folder:
        if settings.jaeger_release_url and settings.jaeger_sha256:
            tell("downloading")
            binary = download(settings.jaeger_release_url, settings.jaeger_sha256, folder)
        elif go := shutil.which("go"):
            tell("building")
            binary = build(go, folder)
        else:
            raise Failure(
                "no Jaeger: install it or Go, or set JAEGER_BIN; everything else works without"
            )
        binary.chmod(0o755)
        binary.rename(target)


def download(url: str, sha256: str, folder: Path) -> Path:
    """The binary out of a release archive.

    Raises:
        Failure: not reachable, or not what the checksum says.
    """
    archive, digest = folder / "archive.tar.gz", hashlib.sha256()
    deadline = time.monotonic() + DOWNLOAD_SECONDS_MAX
    try:
        with (
            httpx.stream("GET", url, follow_redirects=True, timeout=READ_SECONDS_MAX) as answer,
            archive.open("wb") as file,
        ):
            answer.raise_for_status()
            for block in answer.iter_bytes():
                digest.update(block)
                file.write(block)
                if time.monotonic() > deadline:
                    raise Failure(f"the Jaeger archive takes longer than {DOWNLOAD_SECONDS_MAX} s")
    except httpx.HTTPError as error:
        raise Failure(f"the Jaeger archive cannot be fetched ({error})") from error
    if digest.hexdigest() != sha256:
        raise Failure("the Jaeger archive has another checksum than HOMETOWN_JAEGER_SHA256")
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
    raise Failure("the Jaeger archive holds no file called jaeger")


def build(go: str, folder: Path) -> Path:
    """Build inside the module's own folder: its go.mod replaces a module, so `go install` refuses.

    Raises:
        Failure: Go refused; the log has its words.
    """
    described = run([go, "mod", "download", "-json", f"{MODULE}@{MODULE_VERSION}"], folder)
    binary = folder / "jaeger"
    version_flag = f"-X {MODULE}/internal/version.latestVersion=v{VERSION}"
    run(
        [
            *(go, "build", "-trimpath", "-buildvcs=false"),
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
        raise Failure(
            "Jaeger could not be built from the Go module proxy: see `make logs name=jaeger`; "
            "everything else works without"
        ) from error
    return result.stdout


def main() -> int:
    """Ends with 0 when there is no Jaeger to be had, so that the supervisor leaves it at that."""
    # A build that is stopped must still take its workshop away; Jaeger itself gets the default.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    settings = Settings()
    folder, began = RunFolder(settings.run_dir), time.time()
    try:
        binary = obtain(settings, lambda note: write_note(folder, note, began_at_seconds=began))
        note_path(folder).unlink(missing_ok=True)
        os.execv(binary, [str(binary), "--config", str(CONFIG)])
    except Failure as failure:
        reason = str(failure)
    except OSError as error:
        reason = f"{binary} cannot be run ({error.strerror}): check JAEGER_BIN"
    write_note(folder, reason)
    sys.stderr.write(f"hometown: {reason}\n")
    time.sleep(STEADY_SECONDS)  # the supervisor takes a sooner end for a failed start
    return 0


if __name__ == "__main__":
    sys.exit(main())
