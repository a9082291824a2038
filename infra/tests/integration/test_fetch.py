"""Fetching jars from a small registry of our own."""

import hashlib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from fetching.errors import Failure
from fetching.jars import JarList, fetch
from local_stack import ports
from local_stack.settings import Settings
from test_support.http_server import serving

NAMES = ("first", "second")


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """The requests are not the test's output."""


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """The address of a registry with two jars."""
    for name in NAMES:
        folder = tmp_path / "registry" / "org" / "example" / name / "1.0"
        folder.mkdir(parents=True)
        (folder / f"{name}-1.0.jar").write_bytes(name.encode())
    handler = partial(SilentHandler, directory=tmp_path / "registry")
    with serving(handler) as address:
        yield f"{address}/"


def jar_list(tmp_path: Path, *names: str, sha256: str | None = None) -> JarList:
    path = tmp_path / "jars.txt"
    lines = [
        f"{sha256 or hashlib.sha256(name.encode()).hexdigest()}  org.example:{name}:1.0\n"
        for name in names
    ]
    path.write_text("# A comment.\n" + "".join(lines))
    return JarList(name="test", path=path)


def settings_for(tmp_path: Path, registry: str) -> Settings:
    return Settings(cache_dir=tmp_path / "cache", MAVEN_REPOSITORY_URL=registry)


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_was_fetched_is_complete_and_is_not_fetched_again(
    tmp_path: Path, registry: str
) -> None:
    told: list[str] = []
    wanted = jar_list(tmp_path, *NAMES)
    folder = fetch(wanted, settings_for(tmp_path, registry), told.append)
    assert [name for name in files_in(folder) if name.endswith(".jar")] == [
        "first-1.0.jar",
        "second-1.0.jar",
    ]
    assert told == ["test jars: 1 of 2", "test jars: 2 of 2"]
    assert files_in(folder.parent) == [folder.name]
    again = fetch(wanted, settings_for(tmp_path, "http://127.0.0.1:1/"), told.append)
    assert again == folder


def test_a_jar_that_vanished_from_the_cache_is_fetched_again(tmp_path: Path, registry: str) -> None:
    wanted, settings = jar_list(tmp_path, *NAMES), settings_for(tmp_path, registry)
    folder = fetch(wanted, settings, lambda _: None)
    (folder / "first-1.0.jar").unlink()
    assert "first-1.0.jar" in files_in(fetch(wanted, settings, lambda _: None))


def test_a_wrong_checksum_leaves_nothing(tmp_path: Path, registry: str) -> None:
    settings = settings_for(tmp_path, registry)
    with pytest.raises(Failure, match=r"first-1\.0\.jar has the checksum"):
        fetch(jar_list(tmp_path, "first", sha256="0" * 64), settings, lambda _: None)
    assert files_in(settings.cache_dir) == []


def test_a_jar_that_the_registry_lacks_is_named(tmp_path: Path, registry: str) -> None:
    settings = settings_for(tmp_path, registry)
    with pytest.raises(Failure, match=r"responds 404 for org\.example:third:1\.0: set MAVEN_REP"):
        fetch(jar_list(tmp_path, "first", "third"), settings, lambda _: None)
    assert files_in(settings.cache_dir) == []


def test_an_unreachable_registry_is_one_line(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, f"http://127.0.0.1:{ports.find_free()}/")
    with pytest.raises(Failure, match="the Maven registry cannot be reached"):
        fetch(jar_list(tmp_path, "first"), settings, lambda _: None)
    assert files_in(settings.cache_dir) == []


def test_a_fetch_that_takes_too_long_is_ended(tmp_path: Path, registry: str) -> None:
    settings = settings_for(tmp_path, registry).model_copy(update={"fetch_seconds_max": 0.01})
    with pytest.raises(Failure, match="could not be fetched within"):
        fetch(jar_list(tmp_path, "first"), settings, lambda _: None)
    assert files_in(settings.cache_dir) == []
