"""What differs between the topics that the services declare, and those that the brokers have."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

from shared.runtime.brokers import Brokers

REQUEST_TIMEOUT_MILLISECONDS = 30_000
UNKNOWN_TOPIC_OR_PARTITION = 3
SET_FOR_THE_TOPIC = 1
"""Where the value of a setting is from; all others are defaults."""

WHY_NONE_ARE_ADDED = (
    "none are added, as its keys would move to other partitions, and their events lose their order"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTopic:
    """A topic as it should be; `settings` are those that are not the broker's defaults."""

    name: str
    partitions: int
    replicas: int
    settings: Mapping[str, str]
    is_keyed: bool
    """Whether the key of a record decides on its partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentTopic:
    """A topic as the brokers have it; `settings` are those that are set for it."""

    partitions: int
    replicas: int
    """Of the partition that has fewest."""
    settings: Mapping[str, str]


async def read_topics(brokers: Brokers, names: Sequence[str]) -> dict[str, PresentTopic]:
    """Those of the topics that exist. Raises KafkaError."""
    client = AIOKafkaAdminClient(**brokers.options, request_timeout_ms=REQUEST_TIMEOUT_MILLISECONDS)
    try:
        await client.start()
        described = [
            each
            for each in await client.describe_topics(list(names))
            if each["error_code"] != UNKNOWN_TOPIC_OR_PARTITION
        ]
        for each in described:
            require_no_error(each["error_code"], each["topic"])
        settings = await read_settings(client, [each["topic"] for each in described])
    finally:
        await client.close()
    return {
        each["topic"]: PresentTopic(
            partitions=len(each["partitions"]),
            replicas=min(len(partition["replicas"]) for partition in each["partitions"]),
            settings=settings[each["topic"]],
        )
        for each in described
    }


async def read_settings(
    client: AIOKafkaAdminClient, names: Sequence[str]
) -> dict[str, dict[str, str]]:
    """What is set for each topic itself. Raises KafkaError."""
    asked = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    found = {}
    for response in await client.describe_configs(asked) if asked else ():
        for error_code, _, _, topic, entries in response.resources:
            require_no_error(error_code, topic)
            found[topic] = {
                name: value for name, value, _, source, *_ in entries if source == SET_FOR_THE_TOPIC
            }
    return found


def require_no_error(error_code: int, topic: str) -> None:
    if error_code:
        raise for_code(error_code)(topic)


def find_differences(
    declared: Iterable[DeclaredTopic], present: Mapping[str, PresentTopic]
) -> Iterator[str]:
    """A line for each."""
    for topic in declared:
        if topic.name not in present:
            yield f"{topic.name} is missing: `make topics` creates it"
            continue
        found = present[topic.name]
        if found.partitions != topic.partitions:
            yield describe_partitions(topic, found)
        if found.replicas != topic.replicas:
            yield f"{topic.name} has {found.replicas} replicas, not {topic.replicas}"
        for name in sorted(found.settings.keys() | topic.settings.keys()):
            now, wanted = found.settings.get(name), topic.settings.get(name)
            if now != wanted:
                yield f"{topic.name} has {to_text(name, now)}, not {to_text(name, wanted)}"


def find_too_small(
    declared: Iterable[DeclaredTopic], present: Mapping[str, PresentTopic]
) -> Iterator[tuple[DeclaredTopic, PresentTopic]]:
    """Topics without some of the partitions to which writers would write."""
    for topic in declared:
        found = present.get(topic.name)
        if found and found.partitions < topic.partitions:
            yield topic, found


def describe_partitions(topic: DeclaredTopic, found: PresentTopic) -> str:
    text = f"{topic.name} has {found.partitions} partitions, not {topic.partitions}"
    if found.partitions > topic.partitions:
        return text
    return f"{text}: {WHY_NONE_ARE_ADDED if topic.is_keyed else '`make topics` adds them'}"


def to_text(name: str, value: str | None) -> str:
    return f"the default {name}" if value is None else f"{name}={value}"
