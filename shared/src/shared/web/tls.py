"""TLS of HTTP: the authorities that a client of other services trusts."""

import ssl
from pathlib import Path

import httpx


def create_client_context(ca_file: Path | None) -> ssl.SSLContext:
    """Verifies servers and their names: by the usual authorities, and by those of `ca_file`.

    Raises:
        OSError: the file cannot be read, or has no certificates.
    """
    context = httpx.create_ssl_context()
    if ca_file is not None:
        context.load_verify_locations(cafile=ca_file)
    return context
