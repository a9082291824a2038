"""Where the stack runs and which ports it may use, read from the environment."""

import os
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from fetching.settings import INFRA, FetchSettings, absolute

CHECKOUT = INFRA.parent

PORT_PREFIX = "HOMETOWN_PORT_"


def ports_given() -> dict[str, int]:
    """Ports requested by name: `HOMETOWN_PORT_USERS_API=9001` becomes `{"users-api": 9001}`.

    Raises:
        ValueError: a value is not a whole number.
    """
    return {
        name.removeprefix(PORT_PREFIX).lower().replace("_", "-"): int(value)
        for name, value in os.environ.items()
        if name.startswith(PORT_PREFIX)
    }


class Settings(FetchSettings):
    """Every value has a default, so a bare checkout runs."""

    run_dir: Path = CHECKOUT / ".run"
    compose_file: str | None = Field(default=None, validation_alias="COMPOSE_FILE")
    """The Compose file of a stack in containers; None: docker-compose.yml."""
    ports: Literal["default", "free"] = "default"
    ports_given: dict[str, int] = Field(default_factory=ports_given)
    jaeger_wait_seconds: float = Field(default=0, ge=0)

    absolute_run_dir = field_validator("run_dir")(absolute)
