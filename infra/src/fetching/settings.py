"""Where downloads come from and where they are kept, read from the environment."""

import os
import re
from pathlib import Path

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

INFRA = Path(__file__).resolve().parents[2]


def default_cache_dir() -> Path:
    """The user's cache folder, shared by all checkouts."""
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "hometown"


UNUSABLE = re.compile(r'[\x00-\x1f\x7f%#;,:"$`\\]')
"""Characters which PostgreSQL, Java or the supervisor takes for something else in a path."""


def absolute(folder: Path) -> Path:
    """Servers change their working folder, so a relative path would change its meaning.

    Raises:
        ValueError: a program could not use the path.
    """
    path = folder.expanduser().resolve()
    if found := UNUSABLE.search(str(path)):
        raise ValueError(f"the path {path} has {found[0]!r} in it: choose another folder")
    return path


class FetchSettings(BaseSettings):
    """Every value has a default, so a bare checkout runs."""

    model_config = SettingsConfigDict(env_prefix="HOMETOWN_")

    cache_dir: Path = Field(default_factory=default_cache_dir)
    maven_repository_url: str | None = Field(default=None, validation_alias="MAVEN_REPOSITORY_URL")
    fetch_seconds_max: float = Field(default=600, gt=0)
    npm_registry_url: str | None = Field(default=None, validation_alias="NPM_CONFIG_REGISTRY")
    browser_bin: Path | None = None
    jaeger_bin: Path | None = Field(default=None, validation_alias="JAEGER_BIN")
    jaeger_release_url: str | None = None
    jaeger_sha256: str | None = None

    absolute_cache_dir = field_validator("cache_dir")(absolute)
