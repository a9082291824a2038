"""The Compose files as Compose reads them: with what they include, extend and merge."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

COMPOSE_GO = "github.com/compose-spec/compose-go/v2/cmd@v2.4.0"
"""The library that Docker Compose reads its files with."""
RENDER_SECONDS_MAX = 300
"""For Go, which can have to download and build it first."""

Services = Mapping[str, Mapping[str, Any]]


@cache
def find_renderer() -> Sequence[str]:
    """The command to which the name of a file is added: an installed one, or one that Go builds."""
    docker = ["docker", "compose"]
    if (
        shutil.which("docker")
        and not subprocess.run([*docker, "version"], capture_output=True).returncode
    ):
        return docker
    return ["go", "run", COMPOSE_GO] if shutil.which("go") else []


def render(root: Path, file: str) -> Services:
    """All services, also those of profiles."""
    renderer = find_renderer()
    if not renderer:
        pytest.skip("there is neither `docker compose` nor Go here")
    is_docker = renderer[0] == "docker"
    ended = subprocess.run(
        [*renderer, *(["-f", file, "config"] if is_docker else [file])],
        cwd=root,
        env={**os.environ, "COMPOSE_PROFILES": "*"},
        check=True,
        capture_output=True,
        timeout=RENDER_SECONDS_MAX,
    )
    services: dict[str, dict[str, Any]] = yaml.safe_load(ended.stdout)["services"]
    for each in services.values():
        if isinstance(lines := each.get("environment"), list):
            each["environment"] = dict(line.partition("=")[::2] for line in lines)
    return services
