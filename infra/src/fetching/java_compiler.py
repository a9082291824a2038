"""The Java compiler of this machine: the Java that the stack fetches runs programs only."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from fetching.environment import inherit
from fetching.errors import Failure

RELEASE = "17"
"""The oldest Java whose javac is enough; the stack's own runs what it compiles."""
COMPILE_SECONDS_MAX = 120


def has_java_compiler() -> bool:
    return locate() is not None


def find_java_compiler() -> str:
    """Find the javac of JAVA_HOME, or of PATH if that is not set. Raises Failure."""
    found = locate()
    if found is None:
        home = os.environ.get("JAVA_HOME")
        raise Failure(
            f"no javac in {f'JAVA_HOME={home}' if home else 'PATH'}, which compiles programs"
            " in Java: install a JDK, or set JAVA_HOME to one"
        )
    return found


def locate() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("javac", path=f"{home}/bin" if home else None)


def compile_java(sources: Iterable[Path], jars: Path, classes: Path) -> None:
    """Compile programs that use the jars of a folder; the compiler makes the folder of the classes.

    Raises:
        Failure: there is no compiler, or a program does not compile.
    """
    files = list(map(str, sources))
    command = [
        *(find_java_compiler(), "--release", RELEASE, "-d", str(classes)),
        *("-cp", f"{jars}/*", *files),
    ]
    names = ", ".join(Path(file).name for file in files)
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=COMPILE_SECONDS_MAX,
            env=inherit(),
        )
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{names}: not compiled within {COMPILE_SECONDS_MAX} s") from error
    if done.returncode:
        raise Failure(f"{names} does not compile", details=done.stderr.splitlines())
