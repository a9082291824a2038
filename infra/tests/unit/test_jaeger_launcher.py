"""Where Jaeger is found, in which order, and the error when it is not."""

import fcntl
import hashlib
import io
import os
import sys
import tarfile
from pathlib import Path

import httpx
import pytest

from fetching import jaeger_binary
from fetching.errors import Failure
from fetching.jaeger_binary import BUILT_VERSION, Release
from local_stack import jaeger, jaeger_launcher
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings


def install(path: Path, words: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {words}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def no_pinned_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests name their releases themselves, so none of them reaches the network."""
    monkeypatch.setattr(jaeger_binary, "PINNED", {})


@pytest.fixture
def empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def obtain(settings: Settings) -> Path:
    return jaeger_binary.obtain(settings, lambda _: None)


def archive_of(name: str, content: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def serve(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every download answers with the content."""
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=content))
    client = httpx.Client(transport=transport)
    monkeypatch.setattr(httpx, "stream", client.stream)


def test_a_given_binary_comes_first_then_an_installed_then_a_cached_one(
    settings: Settings, empty_path: Path, tmp_path: Path
) -> None:
    cached = install(settings.cache_dir / f"jaeger-{BUILT_VERSION}")
    assert obtain(settings) == cached
    installed = install(empty_path / "jaeger")
    assert obtain(settings) == installed
    given = settings.model_copy(update={"jaeger_bin": tmp_path / "mine"})
    assert obtain(given) == tmp_path / "mine"


def test_without_a_source_there_is_one_line_and_nothing_half_made(
    settings: Settings, empty_path: Path
) -> None:
    with pytest.raises(
        Failure, match=r"there is no Go to build it.*: install it or Go, or set JAEGER_BIN"
    ):
        obtain(settings)
    assert [path.name for path in settings.cache_dir.iterdir()] == ["jaeger.lock"]


def test_a_release_is_unpacked_when_its_checksum_is_right(
    settings: Settings, empty_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = archive_of("jaeger-2/jaeger", b"binary")
    serve(archive, monkeypatch)
    release = {
        "jaeger_release_url": "https://example.org/jaeger.tar.gz",
        "jaeger_sha256": hashlib.sha256(archive).hexdigest(),
    }
    binary = obtain(settings.model_copy(update=release))
    assert binary.read_bytes() == b"binary"
    assert binary.stat().st_mode & 0o111


def test_a_release_with_another_checksum_is_refused(
    settings: Settings, empty_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(archive_of("jaeger-2/jaeger", b"other"), monkeypatch)
    release = {"jaeger_release_url": "https://example.org/j.tar.gz", "jaeger_sha256": "0" * 64}
    with pytest.raises(Failure, match="another checksum than the pinned one"):
        obtain(settings.model_copy(update=release))
    assert [path.name for path in settings.cache_dir.iterdir()] == ["jaeger.lock"]


def test_a_release_of_this_machine_is_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for (system, _), release in jaeger_binary.PINNED.items():
        assert system.lower() in release.url
        assert len(release.sha256) == 64


def test_a_release_out_of_reach_is_replaced_by_a_build(
    settings: Settings, empty_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = Release("http://127.0.0.1:9/jaeger.tar.gz", "0" * 64)
    monkeypatch.setattr(jaeger_binary, "release_of", lambda _: nowhere)
    monkeypatch.setattr(jaeger_binary, "build", lambda go, folder: install(folder / "jaeger"))
    install(empty_path / "go")
    told: list[str] = []

    binary = jaeger_binary.obtain(settings, told.append)

    assert binary.name == f"jaeger-{BUILT_VERSION}"
    assert told == ["downloading", "building"]


def test_a_build_that_fails_is_one_line_and_leaves_nothing(
    settings: Settings, empty_path: Path
) -> None:
    install(empty_path / "nice", "refused; exit 1")
    install(empty_path / "go")
    with pytest.raises(Failure, match="its build failed"):
        obtain(settings)
    assert [path.name for path in settings.cache_dir.iterdir()] == ["jaeger.lock"]


def test_a_build_of_another_checkout_is_waited_for_within_a_bound(
    settings: Settings, empty_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jaeger_binary, "BUILD_SECONDS_MAX", 0)
    settings.cache_dir.mkdir()
    told: list[str] = []
    with (settings.cache_dir / "jaeger.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Failure, match="another process does not finish Jaeger"):
            jaeger_binary.obtain(settings, told.append)
    assert told == ["Jaeger: waiting for another process that makes it"]


def test_the_note_has_the_waiting_time(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    assert jaeger.read_note(folder) == ""
    jaeger.write_note(folder, "building", began_at_seconds=1000)
    monkeypatch.setattr("time.time", lambda: 1190)
    assert jaeger.read_note(folder) == "building 3 min 10 s"
    jaeger.write_note(folder, "no Jaeger")
    assert jaeger.read_note(folder) == "no Jaeger"


def test_the_launcher_ends_well_without_jaeger(
    settings: Settings,
    folder: RunFolder,
    empty_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(settings.run_dir))
    monkeypatch.setenv("HOMETOWN_CACHE_DIR", str(settings.cache_dir))
    monkeypatch.setattr(jaeger_launcher, "STEADY_SECONDS", 0)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert jaeger_launcher.main() == 0
    assert jaeger.read_note(folder).startswith("no Jaeger")
    assert capsys.readouterr().err.startswith("hometown: no Jaeger")


def test_the_launcher_becomes_jaeger(
    settings: Settings, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    became: list[list[str]] = []

    def become(_: Path, arguments: list[str]) -> None:
        assert "HTTPS_PROXY" not in os.environ, "a proxy is for the download of Jaeger"
        became.append(arguments)
        raise SystemExit

    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(settings.run_dir))
    monkeypatch.setenv("JAEGER_BIN", sys.executable)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setattr(jaeger_launcher, "STEADY_SECONDS", 0)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("os.execv", become)
    with pytest.raises(SystemExit):
        jaeger_launcher.main()
    assert became == [[sys.executable, "--config", str(jaeger.CONFIG)]]
