"""The topics: declared in one file, created by one command that is safe to repeat.

python -m shared.topics
"""

import asyncio
import sys
import tomllib
from dataclasses import dataclass
from importlib import resources

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import for_code
from pydantic import Field
from pydantic_settings import BaseSettings

REQUEST_TIMEOUT_MILLISECONDS = 30_000
TOPIC_ALREADY_EXISTS = 36

# A replayable history: records of any age stay. CreateTime is the clock of retention, so without
# this a record with an old time would vanish within minutes.
DOMAIN_TOPIC = {"retention.ms": "-1", "cleanup.policy": "delete"}

# A dead letter is a record and the reason for it: the largest record must still fit.
DEAD_LETTER_TOPIC = DOMAIN_TOPIC | {"max.message.bytes": str(2 * 1024 * 1024)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic as declared; each reader has a dead letter topic with the same keys."""

    name: str
    partitions: int
    readers: tuple[str, ...]
    types: tuple[str, ...]

    def dead_letters_of(self, reader: str) -> str:
        return f"{self.name}.{reader}.dlq"


def declared() -> dict[str, Topic]:
    """Topics by name, from topics.toml."""
    content = tomllib.loads(resources.files("shared").joinpath("topics.toml").read_text())
    return {
        name: Topic(
            name=name,
            partitions=entry["partitions"],
            readers=tuple(entry["readers"]),
            types=tuple(entry["types"]),
        )
        for name, entry in content["topics"].items()
    }


TOPICS = declared()


class TopicSettings(BaseSettings):
    """Where to create the topics, and with how many replicas."""

    kafka_bootstrap_servers: str = "127.0.0.1:19092"
    topic_replication_factor: int = Field(default=1, ge=1)


def wanted(replication_factor: int) -> list[NewTopic]:
    """All topics and their dead letter topics."""
    return [
        NewTopic(name, topic.partitions, replication_factor, topic_configs=configs)
        for topic in TOPICS.values()
        for name, configs in (
            (topic.name, DOMAIN_TOPIC),
            *((topic.dead_letters_of(reader), DEAD_LETTER_TOPIC) for reader in topic.readers),
        )
    ]


async def create(bootstrap_servers: str, replication_factor: int = 1) -> list[str]:
    """Create the topics that are missing; give their names.

    Raises:
        aiokafka.errors.KafkaError: no broker, or it refused for another reason than "exists".
    """
    client = AIOKafkaAdminClient(
        bootstrap_servers=bootstrap_servers, request_timeout_ms=REQUEST_TIMEOUT_MILLISECONDS
    )
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
    settings = TopicSettings()
    created = asyncio.run(
        create(settings.kafka_bootstrap_servers, settings.topic_replication_factor)
    )
    sys.stdout.write("".join(f"created {name}\n" for name in created))
