"""The settings of each process, in addition to those of every process."""

from pathlib import Path

from pydantic import AnyHttpUrl, Field, PostgresDsn

from shared.runtime.settings import DEVELOPMENT, Settings

SHUFFLE_PARTITIONS_DEFAULT = 2
"""Spark's own default of 200 makes every trigger take seconds."""


class ApiSettings(Settings):
    """Settings of the API."""

    stream_seconds_max: float = Field(default=600, gt=0)
    """How long a stream lasts: then the client reconnects, with a token that is still valid."""
    page_behind_proxy: bool = False
    """The page needs no token. Outside of development it exists only with this setting, which
    states that a proxy restricts the page to people who may see the hours."""
    jaeger_ui_url: AnyHttpUrl | None = None
    """Jaeger's address for browsers; without it the page links to no trace."""

    @property
    def jaeger_ui_address(self) -> str | None:
        return str(self.jaeger_ui_url).rstrip("/") if self.jaeger_ui_url else None

    @property
    def has_page(self) -> bool:
        return self.environment == DEVELOPMENT or self.page_behind_proxy


class ReconcileSettings(Settings):
    """The event stores that analytics is compared with, and how often."""

    users_store_url: PostgresDsn
    orders_store_url: PostgresDsn
    reconcile_seconds: int = Field(default=3600, ge=1)
    reconcile_hours_max: int = Field(default=168, ge=1)
    """How many of the last final hours are compared."""


class ExportSettings(Settings):
    """The folder of the Parquet files."""

    export_dir: Path


class JobSettings(Settings):
    """Settings of the streaming job. `buckets` is fixed for the life of a checkpoint."""

    checkpoint_dir: Path
    spark_jars_dir: Path
    """The folder with the four jars of Spark's Kafka connector."""
    spark_aot_cache: Path | None = None
    """Made by `python -m analytics_spark aot-cache`. Without one that fits, Spark starts slower."""
    spark_local_dirs: Path | None = None
    """Where Spark writes what does not fit into memory; None: where Spark does by default."""
    tmpdir: Path | None = None
    """Where Java writes native libraries; None: the system's folder for temporary files."""
    spark_master: str = "local[2]"
    spark_driver_host: str | None = None
    """The name or address at which the executors of a cluster reach the job; None: the machine's
    name."""
    spark_driver_memory: str = "1g"
    spark_executor_memory: str = "1g"
    """Of each executor, when `spark_master` is a cluster."""
    buckets: int = Field(default=8, ge=1, le=1024)
    shuffle_partitions: int | None = Field(default=None, ge=1, le=1024)
    """As many as cores are best. None: the checkpoint's number, 2 for a new one
    (SHUFFLE_PARTITIONS_DEFAULT)."""
    lateness_seconds: int = Field(default=7200, ge=1)
    """How far an order's time can be behind the latest one and still count."""
    trigger_milliseconds: int = Field(default=500, ge=0)
    """How often the job asks Kafka for new records, unless a batch takes longer."""
    row_age_seconds_max: float = Field(default=4, ge=0)
    """How old a record can become until it is counted because the job rests after its batches. 0:
    it never rests."""
    niceness: int = Field(default=10, ge=0, le=19)
    """How much the job yields to other processes when the machine is short of CPU."""
    records_per_trigger_max: int = Field(default=200_000, ge=1)
    """Orders in one batch."""
    table_records_per_trigger_max: int | None = Field(default=None, ge=1)
    """Users in one batch, and items. None, as it should be: all there are."""
