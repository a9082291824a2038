"""The settings that every process has, read once from the environment by `__main__`."""

from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from pydantic import Field, FilePath, PostgresDsn, SecretStr, ValidationInfo, field_validator
from pydantic_settings import BaseSettings

from shared.runtime.brokers import Brokers, Login

DEVELOPMENT_ISSUER = "hometown-development"
"""Every checkout has one of this name, with a key of its own that is stored with its data."""
DEVELOPMENT = "development"

PLACEHOLDERS = frozenset(
    {"admin", "change-me", "changeit", "changeme", "default", "example", "hometown", "insecure"}
    | {"letmein", "pass", "passwd", "password", "placeholder", "postgres", "pw", "root", "secret"}
    | {"test", "todo", "user"}
)
"""Passwords that stand in examples, and so are known to everybody."""


class LogSettings(BaseSettings):
    """What a process logs: `auto` is text on a terminal, and JSON elsewhere."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["auto", "json", "text"] = "auto"


class KafkaSettings(BaseSettings):
    """Where the brokers are; with a user name, the connection is TLS and both sides show who they
    are."""

    kafka_bootstrap_servers: str = "127.0.0.1:19092"
    kafka_username: str | None = None
    kafka_password: SecretStr = SecretStr("")
    kafka_ca_file: Path | None = None
    """Certificates of those who vouch for the brokers, in PEM; None: those that the system has."""

    @property
    def brokers(self) -> Brokers:
        if self.kafka_username is None:
            return Brokers(self.kafka_bootstrap_servers)
        login = Login(
            username=self.kafka_username,
            password=self.kafka_password.get_secret_value(),
            ca_file=self.kafka_ca_file,
        )
        return Brokers(self.kafka_bootstrap_servers, login)


class ProcessSettings(KafkaSettings):
    """A missing or malformed value stops the process with its name.

    What only development may have is refused elsewhere; and elsewhere is the default.
    """

    environment: Literal["development", "production"] = "production"
    http_host: str = "127.0.0.1"
    http_port: int = Field(default=8000, ge=1, le=65535)
    http_connections_max: int = Field(default=500, ge=1)
    """Half of the files that a process may have open by default."""
    http_requests_per_second_max: float = Field(default=1000, gt=0)
    """Of one caller to one process; twice as many at once."""
    http_drain_seconds_min: float = Field(default=0, ge=0)
    """How long an API that stops accepts connections although it has none: behind a proxy, as long
    as the proxy takes to notice that it is not ready any more."""
    http_certificate_file: FilePath | None = None
    """The private key and the certificate of an API in PEM; with it, the API serves https only."""
    http_ca_file: FilePath | None = None
    """Certificates of authorities that calls to other services and to the issuer of tokens trust,
    in PEM; in addition to the usual ones."""
    otel_exporter_otlp_endpoint: str | None = None
    traces_per_second_max: float = Field(default=100, gt=0)
    """Traces that begin in one process and are recorded, of those that the sampler chooses; as many
    at once."""
    otel_metrics_exporter: Literal["prometheus", "none"] = "prometheus"
    """`prometheus`: metrics are served at /metrics, next to the health endpoints."""
    auth_issuer: str | None = None
    """Whose tokens are accepted; an API does not start without."""
    auth_audience: str = Field(default="hometown", min_length=1)
    """Whom a token must be meant for."""
    auth_jwks_url: str | None = None
    """Where the issuer's public keys are: `https://…`, or in development `http://…` or `file:…`."""

    @field_validator("auth_issuer")
    @classmethod
    def no_development_issuer(cls, issuer: str | None, info: ValidationInfo) -> str | None:
        if issuer == DEVELOPMENT_ISSUER and info.data.get("environment") != DEVELOPMENT:
            raise ValueError("is the development issuer, whose key is no secret")
        return issuer

    @field_validator("auth_jwks_url")
    @classmethod
    def no_open_way_to_the_keys(cls, url: str | None, info: ValidationInfo) -> str | None:
        development = info.data.get("environment") == DEVELOPMENT
        schemes = ("https://", "http://", "file:") if development else ("https://",)
        if url is not None and not url.startswith(schemes):
            raise ValueError(f"does not begin with {' or '.join(schemes)}")
        return url


class Settings(ProcessSettings):
    """Of a process that has a database."""

    database_url: PostgresDsn
    database_service_role: str | None = None
    """The role that `migrate`, run by the owner, grants the rights of a service; None: no role."""
    database_reader_role: str | None = None
    """The role that `migrate` grants the right to read facts, and nothing else; None: no role."""
    database_connections_max: int = Field(default=10, ge=2)

    @property
    def database_dsn(self) -> str:
        return str(self.database_url)

    @field_validator("database_url")
    @classmethod
    def no_known_password(cls, url: PostgresDsn, info: ValidationInfo) -> PostgresDsn:
        if info.data.get("environment") == DEVELOPMENT:
            return url
        for host in url.hosts():
            password = unquote(host["password"] or "").lower()
            role = unquote(host["username"] or "").lower()
            if password in PLACEHOLDERS | {"", role}:
                raise ValueError("has no password, or one that everybody knows")
        return url
