"""Jars from a pinned list into the cache folder, fetched by the Ivy that PySpark brings along.

A list is complete in the cache or it is not there: everything is downloaded and checked in a
temporary folder next to the target, and one rename publishes it. Two checkouts may do so at once.
"""

import errno
import hashlib
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE, STDOUT
from xml.sax.saxutils import quoteattr

from fetching.cache import disk_failure, publish, workshop
from fetching.errors import Failure
from fetching.java import find_java
from fetching.settings import INFRA, FetchSettings

CONNECT_MILLISECONDS_MAX = 10_000
READ_MILLISECONDS_MAX = 60_000

# Without POM files and checksum files Ivy makes one request per jar instead of five; the list
# names every jar, and our own SHA-256 is stronger than the registry's.
IVY_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="registry"/>
  <property name="ivy.checksums" value=""/>
  <timeout-constraints>
    <timeout-constraint name="bounded" connectionTimeout="{connect}" readTimeout="{read}"/>
  </timeout-constraints>
  <caches defaultCacheDir={cache} artifactPattern="[artifact]-[revision].[ext]"
          ivyPattern="ivy/[organisation]-[module]-[revision].xml"/>
  <resolvers>
    <ibiblio name="registry" m2compatible="true" usepoms="false" timeoutConstraint="bounded"{root}/>
  </resolvers>
</ivysettings>
"""

IVY_MODULE = """\
<ivy-module version="2.0">
  <info organisation="hometown" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


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


def fetch(wanted: JarList, settings: FetchSettings, tell: Callable[[str], None]) -> Path:
    """The cache folder that holds the jars of the list.

    Raises:
        Failure: no Java, registry not reachable, wrong checksum, disk full, cache not writable.
    """
    target, jars = wanted.folder(settings), wanted.read()
    if target.is_dir() and {jar.file_name for jar in jars} <= set(os.listdir(target)):
        return target
    java = find_java()
    try:
        with workshop(settings.cache_dir) as folder:
            download(java, jars, folder, settings, lambda note: tell(f"{wanted.name} jars: {note}"))
            verify(jars, folder / "jars")
            publish(folder / "jars", target)
    except OSError as error:
        raise disk_failure(error, settings.cache_dir) from error
    return target


def ivy_jar() -> Path:
    """Ivy itself, which is part of the installed PySpark.

    Raises:
        Failure: PySpark is not complete.
    """
    spec = find_spec("pyspark")
    jars = Path(spec.origin).parent / "jars" if spec and spec.origin else Path()
    for jar in sorted(jars.glob("ivy-*.jar")):
        return jar
    raise Failure("PySpark's ivy jar is missing: run `make setup`")


def download(
    java: Path,
    jars: Sequence[Jar],
    folder: Path,
    settings: FetchSettings,
    tell: Callable[[str], None],
) -> None:
    """All jars into `folder`/jars, by one Ivy run that ends within `fetch_seconds_max`.

    Raises:
        Failure: Ivy failed; the reason is taken from what it printed.
    """
    write_ivy_files(folder, jars, settings.maven_repository_url)
    command: list[str | Path] = [
        *(java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-jar", ivy_jar()),
        *("-settings", folder / "settings.xml", "-ivy", folder / "ivy.xml"),
        *("-confs", "default", "-types", "jar", "bundle"),
    ]
    output: list[str] = []
    with (
        subprocess.Popen(command, stdout=PIPE, stderr=STDOUT, text=True) as ivy,
        killed_after(settings.fetch_seconds_max, ivy),
    ):
        done = 0
        for line in ivy.stdout or ():
            output.append(line)
            if "[SUCCESSFUL ]" in line:
                done += 1
                tell(f"{done} of {len(jars)}")
    if ivy.returncode != 0:
        raise download_failure("".join(output), settings)


@contextmanager
def killed_after(seconds_max: float, process: "subprocess.Popen[str]") -> Iterator[None]:
    """Reading a process's output has no bound of its own, so the process gets one."""
    alarm = threading.Timer(seconds_max, process.kill)
    alarm.start()
    try:
        yield
    finally:
        alarm.cancel()


def write_ivy_files(folder: Path, jars: Sequence[Jar], mirror: str | None) -> None:
    """Without a mirror Ivy asks the public registry that it knows by itself."""
    settings = IVY_SETTINGS.format(
        connect=CONNECT_MILLISECONDS_MAX,
        read=READ_MILLISECONDS_MAX,
        cache=quoteattr(str(folder / "jars")),
        root=f" root={quoteattr(mirror)}" if mirror else "",
    )
    dependencies = [
        f"    <dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.name)}"
        f' rev={quoteattr(jar.version)} transitive="false" conf="default->default"/>'
        for jar in jars
    ]
    (folder / "settings.xml").write_text(settings)
    (folder / "ivy.xml").write_text(IVY_MODULE.format(dependencies="\n".join(dependencies)))


def download_failure(output: str, settings: FetchSettings) -> Failure:
    """One line for the long output of Ivy."""
    if "No space left on device" in output:
        return disk_failure(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), settings.cache_dir)
    if "Server access error" in output or "UnknownHost" in output:
        return Failure(
            "the Maven registry cannot be reached: check the network or the proxy, "
            "or set MAVEN_REPOSITORY_URL to a mirror"
        )
    missing = re.findall(r":: (\S+): not found", output)
    if missing:
        return Failure(
            f"the Maven registry does not have {missing[0].replace('#', ':').replace(';', ':')}: "
            "set MAVEN_REPOSITORY_URL to one that does"
        )
    return Failure(
        f"the jars could not be fetched within {settings.fetch_seconds_max:.0f} s: "
        "try again, or set HOMETOWN_FETCH_SECONDS_MAX"
    )


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
