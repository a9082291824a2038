"""The Java that Kafka, Ivy and Spark run on."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from fetching.errors import Failure

JAVA_MAJOR_MIN = 17
VERSION_SECONDS_MAX = 30
ADVICE = f"install Java {JAVA_MAJOR_MIN} or newer, or set JAVA_HOME"


def find_java() -> Path:
    """The `java` of JAVA_HOME, else the one on PATH.

    Raises:
        Failure: there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    candidate = Path(home, "bin", "java") if home else None
    found = candidate if candidate and candidate.exists() else shutil.which("java")
    if found is None:
        raise Failure(f"no Java found: {ADVICE}")
    major = major_version(version_text(Path(found)))
    if major is None:
        raise Failure(f"{found} does not report its version: {ADVICE}")
    if major < JAVA_MAJOR_MIN:
        raise Failure(f"{found} is Java {major}, which is too old: {ADVICE}")
    return Path(found)


def home_of(java: Path) -> Path:
    """Its JAVA_HOME. Spark prefers that to PATH, too, but does not look whether it is any good."""
    return java.resolve().parents[1]


def version_text(java: Path) -> str:
    """The output of `java -version`; empty if it cannot be run."""
    try:
        process = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=VERSION_SECONDS_MAX
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stderr


def major_version(text: str) -> int | None:
    """17 of `openjdk version "17.0.15" …`, and 8 of the old form `java version "1.8.0_402"`."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None
