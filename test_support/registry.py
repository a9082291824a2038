"""A registry of images in memory, as far as `docker push` and `docker pull` ask for it.

Source: the OCI Distribution Specification, version 1.1.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import MappingProxyType
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from test_support.http_server import serving


@dataclass(frozen=True, slots=True)
class Content:
    """A blob or a manifest."""

    body: bytes
    media_type: str = "application/octet-stream"

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.body).hexdigest()}"


@dataclass(slots=True)
class Registry:
    """What it has by path, and the paths of manifests that were read."""

    address: str = ""
    """Of Docker: a host and a port."""
    stored: dict[str, Content] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)
    uploads: dict[str, bytearray] = field(default_factory=dict)


@contextmanager
def registry() -> Iterator[Registry]:
    """Serve an empty one on a free port."""
    here = Registry()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/v2/":
                self.answer(200)
                return
            if "/manifests/" in self.path:
                here.read.append(self.path)
            found = here.stored.get(self.path)
            self.answer(200 if found else 404, found)

        do_HEAD = do_GET

        def do_POST(self) -> None:
            self.receive()
            upload = f"{urlsplit(self.path).path.rstrip('/')}/{uuid4()}"
            here.uploads[upload] = bytearray()
            self.answer(202, headers={"Location": upload})

        def do_PATCH(self) -> None:
            upload = here.uploads[self.path]
            upload += self.receive()
            self.answer(202, headers={"Location": self.path, "Range": f"0-{len(upload) - 1}"})

        def do_PUT(self) -> None:
            target, body = urlsplit(self.path), self.receive()
            folder, _, _ = target.path.rpartition("/")
            if target.path in here.uploads:
                content = Content(bytes(here.uploads.pop(target.path) + body))
                assert parse_qs(target.query)["digest"] == [content.digest]
                folder = folder.removesuffix("/uploads")
            else:
                content = Content(body, self.headers["Content-Type"])
                here.stored[target.path] = content
            here.stored[f"{folder}/{content.digest}"] = content
            named = {"Location": target.path, "Docker-Content-Digest": content.digest}
            self.answer(201, headers=named)

        def receive(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def answer(
            self,
            status: int,
            content: Content | None = None,
            headers: Mapping[str, str] = MappingProxyType({}),
        ) -> None:
            body = content.body if content else b""
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if content:
                self.send_header("Content-Type", content.media_type)
                self.send_header("Docker-Content-Digest", content.digest)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    with serving(Handler) as address:
        here.address = urlsplit(address).netloc
        yield here
