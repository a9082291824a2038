"""Where the stack lives and what it may use, read from the environment."""

import os
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

INFRA = Path(__file__).resolve().parents[2]
CHECKOUT = INFRA.parent

PORT_PREFIX = "HOMETOWN_PORT_"


def default_cache_dir() -> Path:
    """The user's cache folder, shared by all checkouts."""
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "hometown"


def ports_given() -> dict[str, int]:
    """Ports asked for by name: `HOMETOWN_PORT_USERS_API=9001` becomes `{"users-api": 9001}`.

    Raises:
        ValueError: a value is not a whole number.
    """
    return {
        name.removeprefix(PORT_PREFIX).lower().replace("_", "-"): int(value)
        for name, value in os.environ.items()
        if name.startswith(PORT_PREFIX)
    }


class Settings(BaseSettings):
    """Every value has a default, so a bare checkout runs."""

    model_config = SettingsConfigDict(env_prefix="HOMETOWN_")

    run_dir: Path = CHECKOUT / ".run"
    cache_dir: Path = Field(default_factory=default_cache_dir)
    compose_file: str | None = Field(default=None, validation_alias="COMPOSE_FILE")
    """Which containers there are; None: those of docker-compose.yml."""
    ports: Literal["default", "free"] = "default"
    ports_given: dict[str, int] = Field(default_factory=ports_given)
    maven_repository_url: str | None = Field(default=None, validation_alias="MAVEN_REPOSITORY_URL")
    fetch_seconds_max: float = Field(default=600, gt=0)
    npm_registry_url: str | None = Field(default=None, validation_alias="NPM_CONFIG_REGISTRY")
    browser_bin: Path | None = None
    jaeger_bin: Path | None = Field(default=None, validation_alias="JAEGER_BIN")
    jaeger_release_url: str | None = None
    jaeger_sha256: str | None = None
    jaeger_wait_seconds: float = Field(default=0, ge=0)

    @field_validator("run_dir", "cache_dir")
    @classmethod
    def absolute(cls, folder: Path) -> Path:
        """Servers change their working folder, so a relative path would change its meaning."""
        return folder.expanduser().resolve()
