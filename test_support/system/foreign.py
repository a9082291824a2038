"""An environment that belongs to other programs, with a proxy that no process of ours may ask."""

import socketserver
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from test_support.http_server import serving

SHADOWED = ("supervisor", "shared", "asyncpg", "pyspark")
"""Packages, each of which a folder on PYTHONPATH has as well."""


@dataclass(slots=True)
class Proxy:
    """What was sent to it: the first bytes of each connection."""

    url: str
    received: list[bytes] = field(default_factory=list)


@contextmanager
def listening_proxy() -> Iterator[Proxy]:
    """A proxy that remembers what it receives, and answers nothing."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            proxy.received.append(self.request.recv(1 << 12))

    with serving(Handler) as address:
        proxy = Proxy(address)
        yield proxy


def foreign_variables(proxy: Proxy, folder: Path) -> Mapping[str, str]:
    """Each would stop a process, or send elsewhere what it sends, if the process inherited it.

    Downloads use https, so that the proxy is not asked for them.
    """
    for name in SHADOWED:
        (folder / f"{name}.py").write_text("raise SystemExit('a package of another program')\n")
    return {
        "http_proxy": proxy.url,
        "HTTP_PROXY": proxy.url,
        "PYTHONPATH": str(folder),
        "PYTHONWARNINGS": "error",
        "PGSSLMODE": "require",
        "PGTARGETSESSIONATTRS": "read-only",
        "PGOPTIONS": "-c default_transaction_read_only=on",
        "PGSERVICE": "elsewhere",
        "DATABASE_URL": "postgresql://elsewhere",
        "SPARK_LOCAL_HOSTNAME": "elsewhere.invalid",
        "SPARK_CONF_DIR": str(folder),
        "PYSPARK_PYTHON": "/bin/false",
        "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell",
        "JAVA_TOOL_OPTIONS": "-Xmx8m",
        "JDK_JAVA_OPTIONS": "-Xmx8m",
        "_JAVA_OPTIONS": "-Xmx8m",
        "OTEL_SDK_DISABLED": "true",
        "OTEL_PROPAGATORS": "b3",
        "WEB_CONCURRENCY": "4",
    }
