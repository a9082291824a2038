"""Jars from a pinned list of a Maven registry into the cache folder.

A list is complete in the cache or it is not there: everything is downloaded and checked in a
temporary folder next to the target, and one rename publishes it. Two checkouts may do so at once.
"""

import hashlib
import os
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from fetching.cache import disk_failure, publish, workshop
from fetching.errors import Failure
from fetching.settings import INFRA, FetchSettings

MAVEN_CENTRAL = "https://repo.maven.apache.org/maven2"
RESPONSE_SECONDS_MAX = 60.0
"""Until a connection is there, and for each piece of a response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One line of a list."""

    sha256: str
    organisation: str
    name: str
    version: str

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}.jar"

    @property
    def path(self) -> str:
        """Where a Maven registry has it."""
        return f"{self.organisation.replace('.', '/')}/{self.name}/{self.version}/{self.file_name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JarList:
    """A checked-in list, and the cache folder that belongs to exactly this content."""

    name: str
    path: Path

    def read(self) -> list[Jar]:
        lines = [line.split() for line in self.path.read_text().splitlines()]
        entries = [(line[0], *line[1].split(":")) for line in lines if line and line[0] != "#"]
        return [
            Jar(sha256=sha256, organisation=organisation, name=name, version=version)
            for sha256, organisation, name, version in entries
        ]

    def folder(self, settings: FetchSettings) -> Path:
        digest = hashlib.sha256(self.path.read_bytes()).hexdigest()[:12]
        return settings.cache_dir / f"{self.name}-jars-{digest}"


KAFKA_JARS = JarList(name="kafka", path=INFRA / "kafka" / "jars.txt")
SPARK_JARS = JarList(name="spark", path=INFRA / "spark" / "jars.txt")
STREAMS_JARS = JarList(name="streams", path=INFRA / "kafka-streams" / "jars.txt")


def fetch(wanted: JarList, settings: FetchSettings, tell: Callable[[str], None]) -> Path:
    """The cache folder that holds the jars of the list.

    Raises:
        Failure: registry not reachable, wrong checksum, disk full, cache not writable.
    """
    target, jars = wanted.folder(settings), wanted.read()
    if target.is_dir() and {jar.file_name for jar in jars} <= set(os.listdir(target)):
        return target
    try:
        with workshop(settings.cache_dir) as folder:
            download(jars, folder, settings, lambda note: tell(f"{wanted.name} jars: {note}"))
            verify(jars, folder / "jars")
            publish(folder / "jars", target)
    except OSError as error:
        raise disk_failure(error, settings.cache_dir) from error
    return target


def download(
    jars: Sequence[Jar],
    folder: Path,
    settings: FetchSettings,
    tell: Callable[[str], None],
) -> None:
    """All jars into `folder`/jars, within `fetch_seconds_max`.

    Raises:
        Failure: the registry is not reachable, too slow, or does not have one of them.
    """
    target = folder / "jars"
    target.mkdir()
    registry = (settings.maven_repository_url or MAVEN_CENTRAL).rstrip("/")
    deadline = time.monotonic() + settings.fetch_seconds_max
    # The authorities that this machine trusts, which a company may have added one to.
    context = ssl.create_default_context()
    with httpx.Client(
        verify=context, timeout=RESPONSE_SECONDS_MAX, follow_redirects=True
    ) as registry_client:
        for number, jar in enumerate(jars, start=1):
            with (target / jar.file_name).open("wb") as file:
                for block in read_jar(registry_client, f"{registry}/{jar.path}", jar):
                    file.write(block)
                    if time.monotonic() > deadline:
                        raise Failure(
                            "the jars could not be fetched within"
                            f" {settings.fetch_seconds_max:.0f} s: try again, or set"
                            " HOMETOWN_FETCH_SECONDS_MAX"
                        )
            tell(f"{number} of {len(jars)}")


def read_jar(client: httpx.Client, url: str, jar: Jar) -> Iterator[bytes]:
    """The content of a jar, block by block. Raises Failure."""
    try:
        with client.stream("GET", url) as answer:
            answer.raise_for_status()
            yield from answer.iter_bytes()
    except httpx.HTTPStatusError as error:
        raise Failure(
            f"the Maven registry responds {error.response.status_code} for"
            f" {jar.organisation}:{jar.name}:{jar.version}: set MAVEN_REPOSITORY_URL to one that"
            " has it"
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Failure(
            f"the Maven registry cannot be reached ({error}): check the network or the proxy, "
            "or set MAVEN_REPOSITORY_URL to a mirror"
        ) from error


def verify(jars: Sequence[Jar], folder: Path) -> None:
    """Hold every jar against the list.

    Raises:
        Failure: one has other content than the list declares.
    """
    for jar in jars:
        with (folder / jar.file_name).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != jar.sha256:
            raise Failure(
                f"{jar.file_name} has the checksum {digest[:12]}… instead of {jar.sha256[:12]}…: "
                "do not use this registry, set MAVEN_REPOSITORY_URL to another one"
            )
