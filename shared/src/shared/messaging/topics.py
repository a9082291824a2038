"""The topics that the services declare, created by one command that is safe to repeat.

python -m shared.messaging.topics [--check]
"""

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.errors import KafkaError, for_code
from pydantic import Field

from shared.messaging.topic_differences import (
    DeclaredTopic,
    describe_partitions,
    find_differences,
    find_too_small,
    read_topics,
)
from shared.runtime.brokers import Brokers
from shared.runtime.declarations import Declarations, load_declarations
from shared.runtime.processes import read_settings
from shared.runtime.settings import KafkaSettings

REQUEST_TIMEOUT_MILLISECONDS = 30_000
TOPIC_ALREADY_EXISTS = 36

# A replayable history: records of any age stay. CreateTime is the clock of retention, so without
# this a record with an old time would vanish within minutes.
DOMAIN_TOPIC = {"retention.ms": "-1", "cleanup.policy": "delete"}

# A dead letter is a record and the reason for it: the largest record must still fit.
DEAD_LETTER_TOPIC = DOMAIN_TOPIC | {"max.message.bytes": str(2 * 1024 * 1024)}

# The last value of each key is the table; earlier values are not needed.
CHANGELOG_TOPIC = {"cleanup.policy": "compact"}

# Read once, at once. A week covers a program that is stopped over a long weekend.
PASSING_TOPIC = {"retention.ms": str(7 * 24 * 60 * 60 * 1000), "cleanup.policy": "delete"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic as declared; each reader has a dead letter topic with the same keys."""

    name: str
    partitions: int
    readers: tuple[str, ...]
    types: tuple[str, ...]
    category: str | None = None

    def dead_letters_of(self, reader: str) -> str:
        return f"{self.name}.{reader}.dlq"


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """A topic between the steps of one program; no other program relies on it."""

    name: str
    partitions: int
    compacted: bool

    @property
    def configs(self) -> dict[str, str]:
        return CHANGELOG_TOPIC if self.compacted else PASSING_TOPIC


def declared_topics(declarations: Declarations) -> Mapping[str, Topic]:
    """Topics by name, each with the processes that read it."""
    return {
        name: Topic(
            name=name,
            partitions=topic.partitions,
            readers=declarations.readers(name),
            types=topic.types,
            category=topic.category,
        )
        for name, topic in declarations.topics.items()
    }


def declared_internal_topics(declarations: Declarations) -> Mapping[str, InternalTopic]:
    """Internal topics by name."""
    return {
        name: InternalTopic(name=name, partitions=topic.partitions, compacted=topic.compacted)
        for name, topic in declarations.internal_topics.items()
    }


TOPICS = declared_topics(load_declarations())
INTERNAL_TOPICS = declared_internal_topics(load_declarations())


class TopicSettings(KafkaSettings):
    """Where to create the topics, and with how many replicas."""

    topic_replication_factor: int = Field(default=1, ge=1)


def list_declared(replication_factor: int) -> list[DeclaredTopic]:
    """All topics, their dead letter topics, and those between the steps of one program."""
    domain = [
        (name, topic.partitions, configs, name == topic.name)
        for topic in TOPICS.values()
        for name, configs in (
            (topic.name, DOMAIN_TOPIC),
            *((topic.dead_letters_of(reader), DEAD_LETTER_TOPIC) for reader in topic.readers),
        )
    ]
    internal = [
        (each.name, each.partitions, each.configs, True) for each in INTERNAL_TOPICS.values()
    ]
    return [
        DeclaredTopic(
            name=name,
            partitions=partitions,
            replicas=replication_factor,
            settings=configs,
            # A dead letter has the partition of its record.
            is_keyed=is_keyed,
        )
        for name, partitions, configs, is_keyed in (*domain, *internal)
    ]


def list_new_topics(replication_factor: int) -> list[NewTopic]:
    """The same, to be created."""
    return [
        NewTopic(each.name, each.partitions, each.replicas, topic_configs=dict(each.settings))
        for each in list_declared(replication_factor)
    ]


async def create(brokers: Brokers, replication_factor: int = 1) -> list[str]:
    """Create the topics that are missing; return their names.

    Raises:
        aiokafka.errors.KafkaError: no broker, or it refused for another reason than "exists".
    """
    client = AIOKafkaAdminClient(**brokers.options, request_timeout_ms=REQUEST_TIMEOUT_MILLISECONDS)
    try:
        await client.start()
        response = await client.create_topics(list_new_topics(replication_factor))
    finally:
        await client.close()
    for name, code, *reason in response.topic_errors:
        if code not in (0, TOPIC_ALREADY_EXISTS):
            raise for_code(code)(f"{name}: {reason}")
    return [name for name, code, *_ in response.topic_errors if code == 0]


async def add_partitions(brokers: Brokers, topics: Sequence[DeclaredTopic]) -> None:
    """As many as each should have. Raises KafkaError."""
    client = AIOKafkaAdminClient(**brokers.options, request_timeout_ms=REQUEST_TIMEOUT_MILLISECONDS)
    try:
        await client.start()
        await client.create_partitions(
            {each.name: NewPartitions(each.partitions) for each in topics}
        )
    finally:
        await client.close()


async def run(brokers: Brokers, replication_factor: int, *, only_check: bool) -> None:
    """The command: create what is missing, or print what differs.

    Raises:
        SystemExit: 1 when a check finds a difference; or one line, the reason of a failure.
    """
    try:
        if only_check:
            await check(brokers, replication_factor)
        else:
            await complete(brokers, replication_factor)
    except KafkaError as error:
        sys.exit(f"hometown: the brokers do not answer as they should, try again: {error!r}")


async def check(brokers: Brokers, replication_factor: int) -> None:
    """Print the differences; ends the process with 1 when there is one. Raises KafkaError."""
    declared = list_declared(replication_factor)
    present = await read_topics(brokers, [topic.name for topic in declared])
    differences = list(find_differences(declared, present))
    sys.stdout.write("".join(f"{line}\n" for line in differences))
    sys.stdout.write(f"{len(declared)} topics, {len(differences)} differences\n")
    sys.exit(1 if differences else 0)


async def complete(brokers: Brokers, replication_factor: int) -> None:
    """Create the topics that are missing, and add partitions where no key would move.

    Raises:
        SystemExit: one line: a topic has too few partitions, and none can be added.
        KafkaError: the brokers refuse, or do not answer.
    """
    for name in await create(brokers, replication_factor):
        sys.stdout.write(f"created {name}\n")
    declared = list_declared(replication_factor)
    present = await read_topics(brokers, [topic.name for topic in declared])
    too_small = list(find_too_small(declared, present))
    if growing := [topic for topic, _ in too_small if not topic.is_keyed]:
        await add_partitions(brokers, growing)
        sys.stdout.writelines(f"added partitions to {topic.name}\n" for topic in growing)
    for topic, found in too_small:
        if topic.is_keyed:
            sys.exit(f"hometown: {describe_partitions(topic, found)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m shared.messaging.topics", description="create the topics that are missing"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="create nothing; print what differs from the declarations, and end with 1 then",
    )
    arguments = parser.parse_args()
    settings = read_settings(TopicSettings)
    asyncio.run(
        run(settings.brokers, settings.topic_replication_factor, only_check=arguments.check)
    )


if __name__ == "__main__":
    main()
