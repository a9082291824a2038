"""make docs, make docs-serve: build the site, or serve it and build it again after each change."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Set
from pathlib import Path
from typing import Any

import yaml

from local_stack.settings import CHECKOUT
from scripts.documentation import reference
from scripts.documentation.pages import Site, collect, find_documents

SETTINGS = CHECKOUT / "mkdocs.yml"
FOLDER = CHECKOUT / ".run" / "docs"
"""It has the pages, the settings of the generator, its cache, and the site."""
PAGES, SITE, CONFIGURATION = "pages", "site", "mkdocs.yml"
SEARCH_WORKER = "assets/iframe-worker.js"
"""The search of pages without a server needs it; the generator would load it from another host."""
VENDOR = Path(__file__).parent / "vendor"
GENERATOR = (sys.executable, "-m", "mkdocs")
VARIABLES = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
"""Without it each build prints that MkDocs has no successor, which is not about this site."""

BUILD_SECONDS_MAX = 120
POLL_SECONDS = 0.5
STOP_SECONDS_MAX = 5


def main() -> int:
    """0, or the exit status of the generator, which has written its reasons."""
    parser = argparse.ArgumentParser(prog="python -m scripts.documentation", description=__doc__)
    parser.add_argument("--to", type=Path, default=FOLDER, help="a folder for all files")
    parser.add_argument(
        "--source-address", help="where links to other files of the repository lead, with a slash"
    )
    parser.add_argument(
        "--serve", action="store_true", help="serve it, and show changes of documents at once"
    )
    parser.add_argument("--port", type=int, default=8090, help="of 127.0.0.1, for --serve")
    arguments = parser.parse_args()
    if arguments.serve:
        return serve(arguments.to, arguments.source_address, arguments.port)
    return build(arguments.to, arguments.source_address)


def build(folder: Path, source_address: str | None = None) -> int:
    """Build the site in `folder`/site. A warning is a failure."""
    prepare(folder, source_address)
    shutil.rmtree(folder / SITE, ignore_errors=True)
    command = (*GENERATOR, "build", "--quiet", "--strict", "-f", str(folder / CONFIGURATION))
    ended = subprocess.run(command, env=VARIABLES, timeout=BUILD_SECONDS_MAX)
    if ended.returncode == 0:
        sys.stdout.write(f"open {folder / SITE / 'index.html'}\n")
    return ended.returncode


def serve(folder: Path, source_address: str | None, port: int) -> int:
    """Serve the site until it is interrupted. The reference is generated once, at the start."""
    prepare(folder, source_address)
    shown = newest_change()
    address = f"127.0.0.1:{port}"
    options = ("--quiet", "--livereload", "--dirty")
    command = (*GENERATOR, "serve", *options, "-f", str(folder / CONFIGURATION), "-a", address)
    with subprocess.Popen(command, env=VARIABLES) as generator:
        try:
            while generator.poll() is None:
                time.sleep(POLL_SECONDS)
                if (latest := newest_change()) > shown:
                    shown = latest
                    prepare(folder, source_address)
        except KeyboardInterrupt:
            generator.terminate()
            generator.wait(STOP_SECONDS_MAX)
            return 0
    return generator.returncode


def newest_change() -> float:
    """When a document or the navigation was written last."""
    documents = (CHECKOUT / path for path in find_documents(CHECKOUT))
    return max(path.stat().st_mtime for path in (SETTINGS, *documents))


def prepare(folder: Path, source_address: str | None) -> None:
    """Write the pages and the settings of the generator; files that have not changed stay."""
    settings = read_settings(source_address)
    site = collect(
        CHECKOUT,
        settings["nav"],
        reference.generate(),
        settings["extra"]["source_address"],
    )
    wanted = {
        **{path: text.encode() for path, text in site.texts.items()},
        **{path: (CHECKOUT / path).read_bytes() for path in site.images},
        SEARCH_WORKER: (VENDOR / "iframe-worker.js").read_bytes(),
    }
    remove_others(folder / PAGES, wanted.keys())
    for path, content in wanted.items():
        write(folder / PAGES / path, content)
    write(folder / CONFIGURATION, json.dumps(configure(settings, site), indent=2).encode())


def read_settings(source_address: str | None) -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load(SETTINGS.read_text())
    if source_address is not None:
        settings["extra"]["source_address"] = source_address
    return settings


def configure(settings: dict[str, Any], site: Site) -> dict[str, Any]:
    """The settings of the generator, which reads YAML, and so JSON."""
    extra = {**settings["extra"], "polyfills": [SEARCH_WORKER]}
    return {
        **settings,
        "extra": extra,
        "nav": site.navigation,
        "docs_dir": PAGES,
        "site_dir": SITE,
    }


def remove_others(folder: Path, wanted: Set[str]) -> None:
    """Remove the files of earlier pages."""
    for path in folder.rglob("*"):
        if path.is_file() and str(path.relative_to(folder)) not in wanted:
            path.unlink()


def write(path: Path, content: bytes) -> None:
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
