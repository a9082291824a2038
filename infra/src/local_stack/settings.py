"""Where the stack runs and which ports it may use, read from the environment."""

import os
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from fetching.settings import INFRA, FetchSettings, absolute

CHECKOUT = INFRA.parent

PORT_PREFIX = "HOMETOWN_PORT_"
LEVEL_PREFIX = "HOMETOWN_LOG_LEVEL_"

Way = Literal["processes", "containers", "cluster"]
"""How a stack runs: as processes of this machine, in containers, or in a cluster of them."""


def variable(prefix: str, name: str) -> str:
    """Name the variable of a process or port, such as `HOMETOWN_PORT_USERS_API`."""
    return prefix + name.upper().replace("-", "_")


def ports_given() -> dict[str, int]:
    """Ports by name: `HOMETOWN_PORT_USERS_API=9001` becomes `{"users-api": 9001}`.

    Raises:
        ValueError: a value is not a whole number.
    """
    return {
        name.removeprefix(PORT_PREFIX).lower().replace("_", "-"): int(value)
        for name, value in os.environ.items()
        if name.startswith(PORT_PREFIX)
    }


def usual_run_dir(way: Way, root: Path = CHECKOUT / ".run") -> Path:
    """The folder of the stack that runs this way.

    The root itself was the only folder once: processes use it as long as their data are there.
    """
    if way == "processes" and (root / "postgres").exists():
        return root
    return root / way


class Settings(FetchSettings):
    """Every value has a default, so a bare checkout runs."""

    way: Way = Field(default="processes", validation_alias="HOMETOWN_IN")
    run_dir: Path = Field(default_factory=lambda values: usual_run_dir(values["way"]))
    compose_file: str | None = Field(default=None, validation_alias="COMPOSE_FILE")
    """The Compose file of a stack in containers; None: docker-compose.yml."""
    compose_project: str | None = Field(default=None, validation_alias="COMPOSE_PROJECT_NAME")
    """The project of the checkout's own stack in Compose; None: one that follows from its path."""
    images: str = ""
    """Where published images of ours are, such as `ghcr.io/owner/name`; none: they are built."""
    ports: Literal["default", "free"] = "default"
    ports_given: dict[str, int] = Field(default_factory=ports_given)
    jaeger_wait_seconds: float = Field(default=0, ge=0)
    tls: Literal["on", ""] = ""
    """Whether the APIs and PostgreSQL of containers use TLS; processes serve this machine only."""

    absolute_run_dir = field_validator("run_dir")(absolute)

    @property
    def has_tls(self) -> bool:
        return self.tls == "on" and self.way != "processes"
