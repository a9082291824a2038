"""Users of Kafka: a password for each process, and rights on what it declares.

Brokers refuse what no right allows.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from fetching.errors import Failure
from shared.messaging.topics import TOPICS
from shared.runtime.declarations import Process, Service, load_declarations

REQUEST_SECONDS_MAX = 30
ITERATIONS = 4_096
"""Of SCRAM: the least that brokers take. Guessing random passwords is hopeless with any number."""

SPARK = "spark"
"""The need of a process whose consumer groups Spark names."""
SPARKS_GROUPS = "spark-kafka-"
"""How the names of the groups begin that Spark makes for itself."""

CREATOR = "topics"
VISITOR = "visitor"
"""For people who look from outside: it reads everything and writes nothing."""

EVERY = "*"
ALL_RIGHTS = AclBindingFilter(
    ResourceType.ANY,
    None,  # type: ignore[arg-type]
    ResourcePatternType.ANY,
    None,  # type: ignore[arg-type]
    None,  # type: ignore[arg-type]
    AclOperation.ANY,
    AclPermissionType.ANY,
)


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """What one user can do with a resource; a prefixed name stands for all that begin with it."""

    kind: str
    name: str
    operation: str
    is_prefix: bool = False


def rights() -> Mapping[str, Sequence[Right]]:
    """The rights of each user, by its name: processes, tools, and two that no service declares."""
    services = load_declarations().services
    return {
        **{
            process.name: held
            for service in services
            for process in service.processes.values()
            if (held := rights_of_process(service, process))
        },
        **{
            f"{service.name}-tool": rights_of_tool(service)
            for service in services
            if service.database
        },
        CREATOR: [Right("topic", EVERY, "create"), Right("topic", EVERY, "describe")],
        VISITOR: [
            Right("topic", EVERY, "read"),
            Right("topic", EVERY, "describe_configs"),
            Right("group", VISITOR, "read", is_prefix=True),
        ],
    }


def rights_of_process(service: Service, process: Process) -> list[Right]:
    """None for a process that declares nothing of Kafka."""
    rights = [Right("topic", topic, "write") for topic in process.writes]
    rights += [Right("topic", topic, "describe") for topic in process.describes]
    if process.observes:
        rights += [Right(kind, EVERY, "describe") for kind in ("topic", "group")]
    if process.reads:
        rights += [group_of(process), *rights_of_reader(process)]
        rights += [
            Right("topic", topic, operation)
            for topic in service.internal_topics
            for operation in ("read", "write")
        ]
    return rights


def group_of(process: Process) -> Right:
    if SPARK in process.needs:
        return Right("group", SPARKS_GROUPS, "read", is_prefix=True)
    return Right("group", process.name, "read")


def rights_of_reader(process: Process) -> Iterator[Right]:
    """Its topics, and those of its dead letters."""
    for topic in process.reads:
        yield Right("topic", topic, "read")
        yield Right("topic", TOPICS[topic].dead_letters_of(process.name), "write")


def rights_of_tool(service: Service) -> list[Right]:
    """The commands of a service can do what its relay and its readers can do."""
    return sorted(
        {
            right
            for process in service.processes.values()
            if process.writes or process.reads
            for right in rights_of_process(service, process)
        }
    )


def grant(servers: str, folder: Path, passwords: Mapping[str, str]) -> None:
    """Make or renew all users and their rights, as the administrator whose certificate is in
    `folder`, and revoke every other right of any user; safe to repeat.

    Raises:
        Failure: the brokers refuse, or do not answer.
    """
    admin = administrator(servers, folder)
    users = rights()
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
    declared = {binding(user, right) for user, held in users.items() for right in held}
    try:
        made = admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(name, scram, passwords[name].encode()) for name in users],
            request_timeout=REQUEST_SECONDS_MAX,
        )
        granted = admin.create_acls(list(declared), request_timeout=REQUEST_SECONDS_MAX)
        for future in (*made.values(), *granted.values()):
            future.result(REQUEST_SECONDS_MAX)
        take_back(admin, declared)
    except (KafkaException, TimeoutError) as error:
        raise Failure(f"the brokers do not grant the rights: {error}") from error


def administrator(servers: str, folder: Path) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": servers,
            "security.protocol": "SSL",
            "ssl.ca.location": str(folder / "authority.pem"),
            "ssl.certificate.location": str(folder / "admin.pem"),
            "ssl.key.location": str(folder / "admin.pem"),
        }
    )


def take_back(admin: AdminClient, declared: Set[AclBinding]) -> None:
    """Raises KafkaException, TimeoutError."""
    found = admin.describe_acls(ALL_RIGHTS, request_timeout=REQUEST_SECONDS_MAX)
    surplus = set(found.result(REQUEST_SECONDS_MAX)) - declared
    if not surplus:
        return
    filters = [
        AclBindingFilter(
            each.restype,
            each.name,
            each.resource_pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        for each in surplus
    ]
    taken = admin.delete_acls(filters, request_timeout=REQUEST_SECONDS_MAX)
    for future in taken.values():
        future.result(REQUEST_SECONDS_MAX)


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
