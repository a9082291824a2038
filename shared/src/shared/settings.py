"""The settings that every process has, read once from the environment by `__main__`."""

from pydantic import Field, PostgresDsn
from pydantic_settings import BaseSettings


class Settings(BaseSettings):
    """A missing or malformed value stops the process with its name."""

    database_url: PostgresDsn
    database_service_role: str | None = None
    """Whom `migrate`, which runs as the owner, grants the rights of a service; None: nobody."""
    database_connections_max: int = Field(default=10, ge=2)
    kafka_bootstrap_servers: str = "127.0.0.1:19092"
    http_host: str = "127.0.0.1"
    http_port: int = Field(default=8000, ge=1, le=65535)
    otel_exporter_otlp_endpoint: str | None = None

    @property
    def database_dsn(self) -> str:
        return str(self.database_url)
