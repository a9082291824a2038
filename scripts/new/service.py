"""A service of its own folder: the skeleton with another name and other ports."""

import re
from collections.abc import Sequence
from pathlib import Path

from scripts.changes import (
    Step,
    check_types,
    format_code,
    install_packages,
    lock_packages,
    renew_generated,
)
from scripts.new.addition import Addition
from scripts.new.aggregates import list_rules
from scripts.new.skeletons import read_service
from scripts.new.words import NewError, Words, demand_unused
from shared.runtime.declarations import Declarations

COMPOSE = "docker-compose.yml"
COMPOSE_LINE = "  - things-svc/compose.yml"
"""The only line of a file written by hand that names each service."""

PORTS_BASE = 8000
PORT_STEP = 10
"""A service has ports at this distance: 8001, 8011, 8021."""
PORTS_MAX = 65535
SKELETON_PORTS = (8001, 8011, 8021)
"""Of the api, the relay and the worker."""

NEXT_STEPS = """\
  make up                          its API listens on port {port}
  curl -s localhost:{port}/v1/{plural} -H 'Content-Type: application/json' \\
    -H "Authorization: Bearer $(make -s token as=clerk)" -d '{{"name": "first"}}'
  make check                       format, lint, types, imports, contracts and unit tests
To change:
  {source}/{singular}.py   the rules: decide and evolve
  {source}/worker.py   the reactions to messages
  {folder}/service.toml   ports, topics, scopes and roles
docs/new-service.md has each step up to an event of your own in Jaeger.
"""


def plan_service(root: Path, declared: Declarations, words: Words) -> Addition:
    """Return the service with a name of its own.

    Raises:
        NewError: the name is taken, or no ports are free.
    """
    skeleton = read_service()
    demand_free(root, words, declared)
    demand_unused(words, skeleton.values())
    ports = choose_ports(declared)
    texts = {
        words.rename(path): with_ports(words.rename(text), ports) for path, text in skeleton.items()
    }
    texts[COMPOSE] = add_to_compose((root / COMPOSE).read_text(), words.rename(COMPOSE_LINE))
    return Addition(
        title=words.folder,
        texts=texts,
        steps=list_steps(words),
        next_steps=NEXT_STEPS.format(
            folder=words.folder,
            plural=words.plural,
            singular=words.singular,
            port=ports[0],
            source=f"{words.folder}/src/{words.package}",
        ),
    )


def list_steps(words: Words) -> list[Step]:
    """Return what follows from a new folder."""
    return [
        *format_code(words.folder),
        lock_packages("locking its packages"),
        install_packages("installing it"),
        check_types(words.folder),
        *renew_generated("writing its contract"),
    ]


def demand_free(root: Path, words: Words, declared: Declarations) -> None:
    """Raises NewError when a file or a declaration has one of the names."""
    if (root / words.folder).exists():
        raise NewError(f"{words.folder} exists: choose another name, or remove the folder")
    for service in declared.services:
        if words.plural in (service.name, service.package) or words.package == service.package:
            raise NewError(f"{service.folder} is called {words.plural}: choose another name")
    for topic in (*declared.topics, *declared.internal_topics):
        if topic.startswith(f"{words.plural}."):
            raise NewError(f"there is a topic {topic}: choose another name")
    for scope in declared.scopes:
        if scope.startswith(f"{words.plural}:"):
            raise NewError(f"there is a scope {scope}: choose another name")
    for rules, _, _ in list_rules(root, declared):
        if words.singular == rules.stem:
            raise NewError(f"{rules} has an aggregate {rules.stem}: choose another name")


def choose_ports(declared: Declarations) -> tuple[int, ...]:
    """The first free ports of the api, the relay and the worker: 8001, 8011, 8021 and so on.

    Raises:
        NewError: there are none.
    """
    used = {process.port for process in declared.processes}
    for hundred in range(PORTS_BASE, PORTS_MAX - 100, 100):
        for api in range(hundred + 1, hundred + PORT_STEP):
            ports = (api, api + PORT_STEP, api + 2 * PORT_STEP)
            if not used.intersection(ports):
                return ports
    raise NewError("all ports are taken: free some in the files service.toml")


def with_ports(text: str, ports: Sequence[int]) -> str:
    """A text with these ports instead of those of the skeleton."""
    for skeleton, port in zip(SKELETON_PORTS, ports, strict=True):
        text = re.sub(rf"\b{skeleton}\b", str(port), text)
    return text


def add_to_compose(text: str, line: str) -> str:
    """Add the service after the others that are included. Raises NewError."""
    lines = text.splitlines(keepends=True)
    included = [number for number, each in enumerate(lines) if "/compose.yml" in each]
    if not included:
        raise NewError(f"{COMPOSE} includes no service: correct that first")
    lines.insert(included[-1] + 1, f"{line}\n")
    return "".join(lines)
