"""The settings of the two processes beside those that every process has."""

from pathlib import Path

from pydantic import AnyHttpUrl, Field, PostgresDsn

from shared.runtime.settings import DEVELOPMENT, Settings

SHUFFLE_PARTITIONS_DEFAULT = 2
"""Spark's own default of 200 makes every trigger take seconds."""


class ApiSettings(Settings):
    """What the api is told; reading needs nothing more than every process has."""

    stream_seconds_max: float = Field(default=600, gt=0)
    """How long a stream lasts: who listens on comes again, with a token that is still good."""
    page_behind_proxy: bool = False
    """The page asks nobody for a token. Development has it; elsewhere only who says by this that a
    proxy lets nobody to it who may not see the hours."""
    jaeger_ui_url: AnyHttpUrl | None = None
    """Where a browser finds Jaeger; without it the page links to no trace."""

    @property
    def jaeger_ui_address(self) -> str | None:
        return str(self.jaeger_ui_url).rstrip("/") if self.jaeger_ui_url else None

    @property
    def has_page(self) -> bool:
        return self.environment == DEVELOPMENT or self.page_behind_proxy


class ReconcileSettings(Settings):
    """Where the facts are that analytics is compared with, and how often."""

    users_store_url: PostgresDsn
    orders_store_url: PostgresDsn
    reconcile_seconds: int = Field(default=3600, ge=1)
    reconcile_hours_max: int = Field(default=168, ge=1)
    """How many final hours, the last ones, are compared."""


class ExportSettings(Settings):
    """Where the Parquet files are."""

    export_dir: Path


class JobSettings(Settings):
    """What the streaming job is told. `buckets` is fixed for the life of a checkpoint."""

    checkpoint_dir: Path
    spark_jars_dir: Path
    """The folder with the four jars of Spark's Kafka connector."""
    spark_class_archive: Path | None = None
    """What `python -m analytics_spark archive` made. One that is not there, or does not fit, is not
    taken up: Spark starts slower, that is all."""
    spark_master: str = "local[2]"
    spark_driver_memory: str = "1g"
    spark_executor_memory: str = "1g"
    """Of each executor, where `spark_master` is a cluster."""
    buckets: int = Field(default=8, ge=1, le=1024)
    shuffle_partitions: int | None = Field(default=None, ge=1, le=1024)
    """As many as cores. None: what the checkpoint has, SHUFFLE_PARTITIONS_DEFAULT for a new one."""
    lateness_seconds: int = Field(default=7200, ge=1)
    """How far an order's time may lie behind the latest one to be counted still."""
    trigger_milliseconds: int = Field(default=500, ge=0)
    records_per_trigger_max: int = Field(default=200_000, ge=1)
    """Of orders."""
    table_records_per_trigger_max: int | None = Field(default=None, ge=1)
    """Of users, and of items. None, as it should be: all there are."""
