"""The settings of the observer: the address of each database that the services declare."""

from pathlib import Path

from pydantic import Field, PostgresDsn, create_model

from shared.runtime.declarations import load_declarations, store_url
from shared.runtime.settings import ProcessSettings


class WatchSettings(ProcessSettings):
    """Those that do not depend on the databases of the stack."""

    observe_seconds: float = Field(default=3.0, gt=0, le=5)
    """The time between two measurements."""
    data_folder: Path | None = None
    """A folder on the disk with the data; None where that is another machine's, which measures it
    itself."""


def create_settings() -> type[WatchSettings]:
    """With one address for each database: their names are declared, not known here."""
    stores = {store_url(name): (PostgresDsn, ...) for name in load_declarations().databases}
    return create_model("ObserverSettings", __base__=WatchSettings, **stores)  # type: ignore[call-overload,no-any-return]
