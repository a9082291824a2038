"""The topics that the services declare, created by one command that is safe to repeat.

python -m shared.messaging.topics
"""

import asyncio
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import for_code
from pydantic import Field

from shared.runtime.brokers import Brokers
from shared.runtime.declarations import Declarations, load_declarations
from shared.runtime.processes import read_settings
from shared.runtime.settings import KafkaSettings

REQUEST_TIMEOUT_MILLISECONDS = 30_000
TOPIC_ALREADY_EXISTS = 36

AGE_MILLISECONDS_MAX = 300 * 366 * 24 * 60 * 60 * 1000
"""Of a record by its own time. Spark has microseconds in 64 bits, and would stop at a record with a
time that does not fit; here its writer is refused."""

AHEAD_MILLISECONDS_MAX = 90 * 60 * 1000
"""Of a record, by the broker's clock. By default it is an hour, and a broker whose clock is an hour
behind would refuse all records of now. With more, an order from the future could move the watermark
of the job so far that all orders of now would be late."""

# A replayable history: records of any age stay. CreateTime is the clock of retention, so without
# this a record with an old time would vanish within minutes.
DOMAIN_TOPIC = {
    "retention.ms": "-1",
    "cleanup.policy": "delete",
    "message.timestamp.before.max.ms": str(AGE_MILLISECONDS_MAX),
    "message.timestamp.after.max.ms": str(AHEAD_MILLISECONDS_MAX),
}

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


def list_partitions(names: Iterable[str]) -> list[TopicPartition]:
    """List the partitions of topics with these names, which are in TOPICS."""
    return [
        TopicPartition(name, number) for name in names for number in range(TOPICS[name].partitions)
    ]


class TopicSettings(KafkaSettings):
    """Where to create the topics, and with how many replicas."""

    topic_replication_factor: int = Field(default=1, ge=1)


def list_new_topics(replication_factor: int) -> list[NewTopic]:
    """All topics, their dead letter topics, and those between the steps of one program."""
    domain = [
        (name, topic.partitions, configs)
        for topic in TOPICS.values()
        for name, configs in (
            (topic.name, DOMAIN_TOPIC),
            *((topic.dead_letters_of(reader), DEAD_LETTER_TOPIC) for reader in topic.readers),
        )
    ]
    internal = [(each.name, each.partitions, each.configs) for each in INTERNAL_TOPICS.values()]
    return [
        NewTopic(name, partitions, replication_factor, topic_configs=configs)
        for name, partitions, configs in (*domain, *internal)
    ]


async def create(brokers: Brokers, replication_factor: int = 1) -> list[str]:
    """Create the topics that are missing; return their names.

    Raises:
        aiokafka.errors.KafkaError: no broker, or it refused for another reason than "exists".
    """
    client = AIOKafkaAdminClient(**brokers.options, request_timeout_ms=REQUEST_TIMEOUT_MILLISECONDS)
    await client.start()
    try:
        response = await client.create_topics(list_new_topics(replication_factor))
    finally:
        await client.close()
    for name, code, *reason in response.topic_errors:
        if code not in (0, TOPIC_ALREADY_EXISTS):
            raise for_code(code)(f"{name}: {reason}")
    return [name for name, code, *_ in response.topic_errors if code == 0]


if __name__ == "__main__":
    settings = read_settings(TopicSettings)
    created = asyncio.run(create(settings.brokers, settings.topic_replication_factor))
    sys.stdout.write("".join(f"created {name}\n" for name in created))
