"""Make a service of the skeleton, and all that follows from it; or change nothing at all."""

import re
from collections.abc import Sequence
from pathlib import Path

from scripts.changes import (
    PYTHON,
    Report,
    Step,
    install_packages,
    lock_packages,
    renew_generated,
    run_steps,
    unchanged_if_it_fails,
)
from scripts.new.words import NewServiceError, Words, demand_unused
from shared.runtime.declarations import DeclarationError, Declarations, load_declarations

SKELETON = Path(__file__).parent / "skeleton"

COMPOSE = "docker-compose.yml"
COMPOSE_LINE = "  - things-svc/compose.yml"
"""The only line of a file written by hand that names each service."""

PORTS_BASE = 8000
PORT_STEP = 10
"""A service has ports at this distance: 8001, 8011, 8021."""
PORTS_MAX = 65535
SKELETON_PORTS = (8001, 8011, 8021)
"""Of the api, the relay and the worker."""


def make_service(root: Path, words: Words, report: Report) -> int:
    """Make the service in the checkout `root`; return the default port of its API.

    Raises:
        ChangeError: the name is taken, or a step failed; no file was changed then.
    """
    skeleton = read_skeleton()
    try:
        declared = load_declarations(root)
    except DeclarationError as error:
        raise NewServiceError(f"{error}; correct that first") from None
    demand_free(root, words, declared)
    demand_unused(words, skeleton.values())
    ports = choose_ports(declared)
    with unchanged_if_it_fails(root):
        for path, text in skeleton.items():
            write_text(root / words.rename(path), with_ports(words.rename(text), ports))
        add_to_compose(root / COMPOSE, words.rename(COMPOSE_LINE))
        run_steps(root, list_steps(words), report)
    report(f"made {words.folder} with ports {', '.join(map(str, ports))}")
    return ports[0]


def list_steps(words: Words) -> list[Step]:
    """Return what follows from a new folder."""
    return [
        (
            "ordering its imports",
            [PYTHON, "-m", "ruff", "check", "-q", "--select=I", "--fix", words.folder],
        ),
        ("formatting", [PYTHON, "-m", "ruff", "format", "-q", words.folder]),
        lock_packages("locking its packages"),
        install_packages("installing it"),
        *renew_generated("writing its contract"),
    ]


def read_skeleton() -> dict[str, str]:
    """The texts of the skeleton by their paths."""
    return {
        str(path.relative_to(SKELETON)): path.read_text()
        for path in sorted(SKELETON.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def demand_free(root: Path, words: Words, declared: Declarations) -> None:
    """Raises NewServiceError when a file or a declaration has one of the names."""
    if (root / words.folder).exists():
        raise NewServiceError(f"{words.folder} exists: choose another name, or remove the folder")
    for service in declared.services:
        if words.plural in (service.name, service.package) or words.package == service.package:
            raise NewServiceError(f"{service.folder} is called {words.plural}: choose another name")
    for topic in (*declared.topics, *declared.internal_topics):
        if topic.startswith(f"{words.plural}."):
            raise NewServiceError(f"there is a topic {topic}: choose another name")
    for scope in declared.scopes:
        if scope.startswith(f"{words.plural}:"):
            raise NewServiceError(f"there is a scope {scope}: choose another name")


def choose_ports(declared: Declarations) -> tuple[int, ...]:
    """The first free ports of the api, the relay and the worker: 8001, 8011, 8021 and so on.

    Raises:
        NewServiceError: there are none.
    """
    used = {process.port for process in declared.processes}
    for hundred in range(PORTS_BASE, PORTS_MAX - 100, 100):
        for api in range(hundred + 1, hundred + PORT_STEP):
            ports = (api, api + PORT_STEP, api + 2 * PORT_STEP)
            if not used.intersection(ports):
                return ports
    raise NewServiceError("all ports are taken: free some in the files service.toml")


def with_ports(text: str, ports: Sequence[int]) -> str:
    """A text with these ports instead of those of the skeleton."""
    for skeleton, port in zip(SKELETON_PORTS, ports, strict=True):
        text = re.sub(rf"\b{skeleton}\b", str(port), text)
    return text


def add_to_compose(path: Path, line: str) -> None:
    """Add the service after the others that are included. Raises NewServiceError."""
    lines = path.read_text().splitlines(keepends=True)
    included = [number for number, each in enumerate(lines) if "/compose.yml" in each]
    if not included:
        raise NewServiceError(f"{path.name} includes no service: correct that first")
    lines.insert(included[-1] + 1, f"{line}\n")
    path.write_text("".join(lines))


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
