"""The address of Kafka and a client's login: one value for every library that connects."""

import functools
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MECHANISM = "SCRAM-SHA-512"
PROTOCOL = "SASL_SSL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A name and a password, which is never sent (RFC 5802), over TLS.

    `ca_file` has the certificates, in PEM, of the brokers' authorities; None: the system's.
    """

    username: str
    password: str = field(repr=False)
    ca_file: Path | None


@dataclass(frozen=True, slots=True)
class Brokers:
    """`servers` is host:port,host:port. Without a login the connection is plain, as on a
    development machine."""

    servers: str
    login: Login | None = None

    @property
    def options(self) -> dict[str, Any]:
        """For aiokafka's clients. Raises OSError when the certificates cannot be read."""
        if self.login is None:
            return {"bootstrap_servers": self.servers}
        return {
            "bootstrap_servers": self.servers,
            "security_protocol": PROTOCOL,
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": self.login.username,
            "sasl_plain_password": self.login.password,
            "ssl_context": create_ssl_context(self.login.ca_file),
        }

    @property
    def java_options(self) -> dict[str, str]:
        """For Kafka's own clients, by the names of their configuration.

        The certificates themselves are in it: Spark hands it to machines that have no such file.

        Raises:
            OSError: the certificates cannot be read.
        """
        if self.login is None:
            return {"bootstrap.servers": self.servers}
        options = {
            "bootstrap.servers": self.servers,
            "security.protocol": PROTOCOL,
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required"
                f" username={quote_jaas(self.login.username)}"
                f" password={quote_jaas(self.login.password)};"
            ),
        }
        if self.login.ca_file is not None:
            options["ssl.truststore.type"] = "PEM"
            options["ssl.truststore.certificates"] = self.login.ca_file.read_text()
        return options


@functools.cache
def create_ssl_context(ca_file: Path | None) -> ssl.SSLContext:
    """Of brokers with these certificates, under the names that they have there."""
    return ssl.create_default_context(cafile=ca_file)


def quote_jaas(text: str) -> str:
    """As a string of a JAAS configuration."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
