"""Published images replace those of the checkout on request only, and nothing replaces those."""

import hashlib
import json
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from containers.compose import Project
from containers.settings import ContainerSettings
from containers.up import down
from test_support.system.stack import Stack

IMAGE = "hometown/infra:latest"
SERVICE = "secrets"
"""It needs no other one."""
VERSION = "9.9.9"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
SAVE_SECONDS_MAX = 300


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry of one image, as `docker save` wrote it; it keeps the paths that were read."""

    port: int
    read: list[str] = field(default_factory=list)

    @property
    def images(self) -> str:
        return f"127.0.0.1:{self.port}/hometown"

    @property
    def image(self) -> str:
        return f"{self.images}/infra:{VERSION}"


@contextmanager
def serve(layout: Path) -> Iterator[Registry]:
    [tagged] = json.loads((layout / "index.json").read_text())["manifests"]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            served.read.append(self.path)
            kind, wanted = ["", *self.path.rstrip("/").split("/")][-2:]
            digest = tagged["digest"] if wanted == VERSION else wanted
            file = layout / "blobs" / digest.replace(":", "/")
            if digest.startswith("sha256:") and file.exists():
                is_manifest = kind == "manifests"
                media_type = MANIFEST if is_manifest else "application/octet-stream"
                self.answer(200, file.read_bytes(), media_type)
            else:
                self.answer(200 if self.path == "/v2/" else 404, b"{}", "application/json")

        do_HEAD = do_GET

        def answer(self, status: int, body: bytes, media_type: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            digest = hashlib.sha256(body).hexdigest()
            self.send_header("Docker-Content-Digest", f"sha256:{digest}")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Registry(server.server_port)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def layout(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image of the stack that runs, as files. That stack has built it."""
    folder = tmp_path_factory.mktemp("layout")
    saved = folder / "image.tar"
    subprocess.run(
        ["docker", "save", "--output", saved, IMAGE], check=True, timeout=SAVE_SECONDS_MAX
    )
    with tarfile.open(saved) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def registry(layout: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    with serve(layout) as served:
        monkeypatch.setenv("HOMETOWN_IMAGES", served.images)
        monkeypatch.setenv("HOMETOWN_VERSION", VERSION)
        yield served


@pytest.fixture
def project(tmp_path: Path, registry: Registry) -> Iterator[Project]:
    """A project of its own, which is gone afterwards, with what it has pulled or built."""
    project = Project(
        settings=ContainerSettings(run_dir=tmp_path / "run", ports_given={}), ports={}
    )
    yield project
    assert down(project, "--volumes") == 0
    if has_image(project, registry):
        project.docker("rmi", registry.image)


def has_image(project: Project, registry: Registry) -> bool:
    return bool(project.docker("images", "--quiet", registry.image).strip())


def test_a_published_image_is_pulled_and_runs(
    project: Project, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMETOWN_PULL", "missing")

    assert project.call("up", "--no-build", SERVICE) == 0

    container = project.containers()[SERVICE]
    image = project.docker("inspect", "--format", "{{.Config.Image}}", container.id)
    assert image.strip() == registry.image
    assert f"/v2/hometown/infra/manifests/{VERSION}" in registry.read


def test_without_the_setting_no_registry_is_asked(project: Project, registry: Registry) -> None:
    """What runs is built here, even under the name of a published image."""
    assert project.call("up", SERVICE) == 0

    assert has_image(project, registry)
    assert registry.read == []


def test_offline_nothing_of_the_checkout_takes_the_place_of_a_published_image(
    project: Project, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMETOWN_PULL", "missing")
    monkeypatch.setenv("HOMETOWN_VERSION", "0.0.0")

    assert project.call("up", "--no-build", SERVICE) != 0

    listed = project.docker("images", "--quiet", registry.image.replace(VERSION, "0.0.0"))
    assert listed.strip() == ""
