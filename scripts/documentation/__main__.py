"""make docs: build the documents as a site, which a browser can open from its folder."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from scripts.changes import CHECKOUT, ChangeError, list_tracked, run_command
from scripts.documentation import concepts, reference
from scripts.documentation.pages import ANY, Checkout, resolve

SETTINGS = CHECKOUT / "mkdocs.yml"
SITE = CHECKOUT / ".run" / "site"
WEB = Path(__file__).parent / "web"
"""What pages load besides the files of the theme, under the same paths below `web`."""
GENERATOR = (sys.executable, "-m", "mkdocs")
VARIABLES = {"NO_MKDOCS_2_WARNING": "1"}
"""Without it, each build prints that MkDocs has no successor, which is not about this site."""

SKELETON = "scripts/new/skeleton/"
BUILD_SECONDS_MAX = 300


def main() -> int:
    """Return 0; 1 with what is wrong in which document on standard error."""
    parser = argparse.ArgumentParser(prog="make docs", description=__doc__)
    parser.add_argument("--to", type=Path, help="a new folder; default: .run/site")
    parser.add_argument(
        "--source",
        default=f"{CHECKOUT.as_uri()}/",
        help="the address at which readers find the files of this checkout; default: its own",
    )
    arguments = parser.parse_args()
    return run_command(lambda: build(arguments.to, arguments.source))


def build(to: Path | None, source: str) -> int:
    """Build the site of this checkout, and print its path.

    Raises:
        ChangeError: the folder is not new, or a document or the settings cannot be read.
    """
    if to is not None and to.exists():
        raise ChangeError(f"{to} exists: name a new folder")
    site = SITE if to is None else to.absolute()
    if not build_pages(open_checkout(source), read_settings(SETTINGS), site):
        sys.stderr.write("hometown: the site was not built: correct what the lines above name\n")
        return 1
    sys.stdout.write(f"open {site / 'index.html'}\n")
    return 0


def open_checkout(source: str) -> Checkout:
    """Return this checkout with its reference, without the documents of services yet to be made.

    Raises:
        ChangeError: it is none of git.
    """
    files = [file for file in list_tracked(CHECKOUT) if not file.startswith(SKELETON)]
    return Checkout(CHECKOUT, files, source, {**concepts.generate(), **reference.generate()})


def read_settings(path: Path) -> dict[str, Any]:
    """Raises ChangeError."""
    try:
        settings: dict[str, Any] = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ChangeError(f"{path.name} is malformed: {' '.join(str(error).split())}") from None
    return settings


def build_pages(checkout: Checkout, settings: Mapping[str, Any], site: Path) -> bool:
    """Build a site in its folder, and return whether nothing is wrong.

    A warning of the generator is a failure: it is printed, and the folder stays as it was.
    """
    site.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".docs-", dir=site.parent) as made:
        folder = Path(made)
        ended = subprocess.run(
            # Not with --quiet: with it, no warning is a failure.
            (*GENERATOR, "build", "--strict", "-f", prepare(checkout, settings, folder)),
            env={**os.environ, **VARIABLES},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=BUILD_SECONDS_MAX,
        )
        if ended.returncode != 0:
            sys.stderr.writelines(select_flaws(ended.stderr))
            return False
        if site.exists():
            site.rename(folder / "replaced")
        (folder / "site").rename(site)
    return True


def prepare(checkout: Checkout, settings: Mapping[str, Any], folder: Path) -> Path:
    """Write the pages of a site, and return the path of the settings with which to build it."""
    pages = folder / "pages"
    images = set[str]()
    for path in checkout.pages:
        page = checkout.read_page(path)
        write(pages / path, page.text.encode())
        images |= page.images
    for path in checkout.about_pages:
        write(pages / path, checkout.read_text(path).encode())
    for path in images:
        write(pages / path, (checkout.root / path).read_bytes())
    shutil.copytree(WEB, pages / WEB.name, dirs_exist_ok=True)
    of_site = {
        "nav": resolve(settings.get("nav", [ANY]), checkout.pages),
        "docs_dir": str(pages),
        "site_dir": str(folder / "site"),
    }
    configuration = folder / "mkdocs.yml"
    configuration.write_text(json.dumps({**settings, **of_site}))  # which is YAML, too
    return configuration


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def select_flaws(printed: str) -> Iterator[str]:
    """Yield what the generator has written, without its lines of progress."""
    for line in printed.splitlines(keepends=True):
        if not line.startswith("INFO"):
            yield line


if __name__ == "__main__":
    sys.exit(main())
