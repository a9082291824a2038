"""The settings of the observer: the address of each database that the services declare."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, PostgresDsn, create_model, field_validator
from pydantic_settings import NoDecode

from shared.runtime.declarations import load_declarations
from shared.runtime.settings import ProcessSettings


class WatchSettings(ProcessSettings):
    """Those of the observer that do not depend on the databases of the stack."""

    observe_seconds: float = Field(default=5.0, gt=0)
    """The time between two measurements; a state needs `SAMPLES` of them."""
    disk_folders: Annotated[Mapping[str, Path], NoDecode] = Field(default_factory=dict)
    """Names of disks, and a folder on each: postgres=/a,other=/b."""

    @field_validator("disk_folders", mode="before")
    @classmethod
    def split(cls, folders: object) -> object:
        if not isinstance(folders, str):
            return folders
        return dict(each.split("=", 1) for each in folders.split(",") if "=" in each)


def name_store_url(database: str) -> str:
    """The setting with the address of a database."""
    return f"{database}_store_url"


def create_settings() -> type[WatchSettings]:
    """With one address for each database: their names are declared, not known here."""
    stores = {name_store_url(name): (PostgresDsn, ...) for name in load_declarations().databases}
    return create_model("ObserverSettings", __base__=WatchSettings, **stores)  # type: ignore[call-overload,no-any-return]


class CanarySettings(ProcessSettings):
    """The APIs that the canary calls, its token, and the time between two of its orders."""

    users_url: str
    orders_url: str
    analytics_url: str
    canary_token_file: Path
    canary_seconds: float = Field(default=60.0, ge=1)
