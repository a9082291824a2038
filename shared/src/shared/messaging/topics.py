"""The topics: declared in one file, created by one command that is safe to repeat.

python -m shared.messaging.topics
"""

import asyncio
import sys
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import for_code
from pydantic import Field

from shared.runtime.brokers import Brokers
from shared.runtime.processes import read_settings
from shared.runtime.settings import KafkaSettings

REQUEST_TIMEOUT_MILLISECONDS = 30_000
TOPIC_ALREADY_EXISTS = 36

# A replayable history: records of any age stay. CreateTime is the clock of retention, so without
# this a record with an old time would vanish within minutes.
DOMAIN_TOPIC = {"retention.ms": "-1", "cleanup.policy": "delete"}

# A dead letter is a record and the reason for it: the largest record must still fit.
DEAD_LETTER_TOPIC = DOMAIN_TOPIC | {"max.message.bytes": str(2 * 1024 * 1024)}

# The last value of each key is the table; what came before it is nobody's history.
CHANGELOG_TOPIC = {"cleanup.policy": "compact"}

# Read once, at once. A week is for a program that stands still over a long weekend.
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
    """A topic between the steps of one program; it promises nothing to others."""

    name: str
    partitions: int
    compacted: bool

    @property
    def configs(self) -> dict[str, str]:
        return CHANGELOG_TOPIC if self.compacted else PASSING_TOPIC


def content() -> dict[str, Any]:
    return tomllib.loads(resources.files("shared.messaging").joinpath("topics.toml").read_text())


def declared(content: dict[str, Any]) -> dict[str, Topic]:
    """Topics by name."""
    return {
        name: Topic(
            name=name,
            partitions=entry["partitions"],
            readers=tuple(entry["readers"]),
            types=tuple(entry["types"]),
        )
        for name, entry in content["topics"].items()
    }


def declared_internal(content: dict[str, Any]) -> dict[str, InternalTopic]:
    """Internal topics by name."""
    return {
        name: InternalTopic(name=name, partitions=entry["partitions"], compacted=entry["compacted"])
        for name, entry in content["internal"].items()
    }


TOPICS = declared(content())
INTERNAL_TOPICS = declared_internal(content())


class TopicSettings(KafkaSettings):
    """Where to create the topics, and with how many replicas."""

    topic_replication_factor: int = Field(default=1, ge=1)


def wanted(replication_factor: int) -> list[NewTopic]:
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
    """Create the topics that are missing; give their names.

    Raises:
        aiokafka.errors.KafkaError: no broker, or it refused for another reason than "exists".
    """
    client = AIOKafkaAdminClient(**brokers.options, request_timeout_ms=REQUEST_TIMEOUT_MILLISECONDS)
    await client.start()
    try:
        response = await client.create_topics(wanted(replication_factor))
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
