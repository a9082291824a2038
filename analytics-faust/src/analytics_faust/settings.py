"""Settings in addition to those of every process."""

from pathlib import Path

from pydantic import Field

from shared.runtime.settings import ProcessSettings


class FaustSettings(ProcessSettings):
    """Two workers on one machine need two folders: RocksDB allows one process for each."""

    faust_dir: Path
    """The folder of the tables, which can be rebuilt from their changelogs."""
    faust_standby_replicas: int = Field(default=1, ge=0)
    """How many other workers keep a copy of each table, to take over when this one dies."""
    analytics_url: str | None = None
    """`http://host:port` of analytics-spark, with which the hours are compared."""
