"""The settings beside those that every process has."""

from pathlib import Path

from pydantic import Field

from shared.runtime.settings import ProcessSettings


class FaustSettings(ProcessSettings):
    """Two workers on one machine need two folders: RocksDB lets one process in."""

    faust_dir: Path
    """Where the tables lie; all of it can be made again from their changelogs."""
    faust_standby_replicas: int = Field(default=1, ge=0)
    """How many other workers keep a copy of each table, to go on with when this one dies."""
    analytics_url: str | None = None
    """Where the answer of Spark is asked for, to be compared."""
