"""The address of Kafka and a client's login: one value for every library that connects."""

import functools
import json
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

    def to_text(self) -> str:
        """The address and the login, for a process on another machine: `read_client_options`.

        It has the certificates themselves, as that machine may have no such file.

        Raises:
            OSError: the certificates cannot be read.
        """
        values: dict[str, str | None] = {"servers": self.servers}
        if self.login is not None:
            ca_file = self.login.ca_file
            values |= {
                "username": self.login.username,
                "password": self.login.password,
                "certificates": None if ca_file is None else ca_file.read_text(),
            }
        return json.dumps(values)


def read_client_options(text: str) -> dict[str, Any]:
    """The options of aiokafka's clients, from the text of `Brokers.to_text`."""
    values = json.loads(text)
    if "username" not in values:
        return {"bootstrap_servers": values["servers"]}
    return {
        "bootstrap_servers": values["servers"],
        "security_protocol": PROTOCOL,
        "sasl_mechanism": MECHANISM,
        "sasl_plain_username": values["username"],
        "sasl_plain_password": values["password"],
        "ssl_context": ssl.create_default_context(cadata=values["certificates"]),
    }


@functools.cache
def create_ssl_context(ca_file: Path | None) -> ssl.SSLContext:
    """Of brokers with these certificates, under the names that they have there."""
    return ssl.create_default_context(cafile=ca_file)
