"""Who may do what in Kafka: a password for each process, and rights on what it works with alone.

What is nobody's is refused by the brokers. The rights follow from the topics' declarations.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from embedded.errors import Failure
from shared.topics import INTERNAL_TOPICS, TOPICS

REQUEST_SECONDS_MAX = 30
ITERATIONS = 4_096
"""Of SCRAM: the least that brokers take. Guessing random passwords is hopeless with any number."""

WRITERS = {"users-relay": ["users.v1"], "orders-relay": ["items.v1", "orders.v1"]}
GROUPED = ("users-worker", "orders-worker", "analytics-faust")
"""Who reads as the consumer group of its own name."""
SPARK = "analytics-job"
SPARKS_GROUPS = "spark-kafka-"
"""How the names of the groups begin that Spark makes for itself."""

TOOLS = {
    "users-tool": ("users-relay", "users-worker"),
    "orders-tool": ("orders-relay", "orders-worker"),
    "analytics-tool": (SPARK,),
}
"""The commands of a service may do what its processes may do."""

CREATOR = "topics"
VISITOR = "visitor"
"""Whoever wants to look, from outside: reads all, writes nothing."""

EVERY = "*"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """What one user may do with a resource; a prefixed name stands for all that begin with it."""

    kind: str
    name: str
    operation: str
    is_prefix: bool = False


def rights() -> Mapping[str, Sequence[Right]]:
    """The rights of each user, by its name."""
    processes = {
        **{name: [Right("topic", topic, "write") for topic in WRITERS[name]] for name in WRITERS},
        **{name: [Right("group", name, "read"), *rights_of_reader(name)] for name in GROUPED},
        SPARK: [
            Right("group", SPARKS_GROUPS, "read", is_prefix=True),
            *rights_of_reader(SPARK),
        ],
        "analytics-api": [Right("topic", topic, "describe") for topic in read_by(SPARK)],
        CREATOR: [Right("topic", EVERY, "create"), Right("topic", EVERY, "describe")],
        VISITOR: [
            Right("topic", EVERY, "read"),
            Right("topic", EVERY, "describe_configs"),
            Right("group", VISITOR, "read", is_prefix=True),
        ],
    }
    processes["analytics-faust"] += [
        Right("topic", topic.name, operation)
        for topic in INTERNAL_TOPICS.values()
        for operation in ("read", "write")
    ]
    tools = {
        tool: sorted({right for name in names for right in processes[name]})
        for tool, names in TOOLS.items()
    }
    return processes | tools


def read_by(reader: str) -> list[str]:
    return [topic.name for topic in TOPICS.values() if reader in topic.readers]


def rights_of_reader(reader: str) -> Iterator[Right]:
    """Its topics, and those of its dead letters."""
    for name in read_by(reader):
        yield Right("topic", name, "read")
        yield Right("topic", TOPICS[name].dead_letters_of(reader), "write")


def grant(servers: str, folder: Path, passwords: Mapping[str, str]) -> None:
    """Make or renew all users and their rights, as the administrator whose certificate is in
    `folder`; safe to repeat.

    Raises:
        Failure: the brokers refuse, or do not answer.
    """
    admin = AdminClient(
        {
            "bootstrap.servers": servers,
            "security.protocol": "SSL",
            "ssl.ca.location": str(folder / "authority.pem"),
            "ssl.certificate.location": str(folder / "admin.pem"),
            "ssl.key.location": str(folder / "admin.pem"),
        }
    )
    users = rights()
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
    made = admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion(name, scram, passwords[name].encode()) for name in users],
        request_timeout=REQUEST_SECONDS_MAX,
    )
    granted = admin.create_acls(
        [binding(user, right) for user, held in users.items() for right in held],
        request_timeout=REQUEST_SECONDS_MAX,
    )
    for future in (*made.values(), *granted.values()):
        try:
            future.result(REQUEST_SECONDS_MAX)
        except Exception as error:  # the library's own, which says what was refused
            raise Failure(f"the brokers do not grant the rights: {error}") from error


def binding(user: str, right: Right) -> AclBinding:
    return AclBinding(
        ResourceType[right.kind.upper()],
        right.name,
        ResourcePatternType.PREFIXED if right.is_prefix else ResourcePatternType.LITERAL,
        f"User:{user}",
        EVERY,
        AclOperation[right.operation.upper()],
        AclPermissionType.ALLOW,
    )
