"""The page of topics: as services declare them, and as they are created."""

from collections.abc import Iterator, Mapping

from scripts.documentation.markdown import code, codes, join_parts, table
from shared.messaging.topics import DEAD_LETTER_TOPIC, DOMAIN_TOPIC, INTERNAL_TOPICS, TOPICS
from shared.runtime.declarations import load_declarations

DAY_MILLISECONDS = 24 * 60 * 60 * 1000


def write() -> str:
    return join_parts(
        "# Topics",
        "Each service declares its topics in its `service.toml`, and `python -m"
        " shared.messaging.topics` creates them. [Events](events.md) shows what is in them.",
        "## Topics with public events",
        table(
            ("topic", "written by", "key", "partitions", "retention", "event types", "read by"),
            list_public(),
        ),
        "## Dead letters",
        "A reader puts a record that it cannot handle into its dead letter topic: the same bytes"
        " with the reason, under the same key and in the same partition.",
        table(("topic", "written by", "partitions", "retention"), list_dead_letters()),
        *write_internal(),
    )


def list_public() -> Iterator[tuple[str, ...]]:
    for service in load_declarations().services:
        for name, declared in service.topics.items():
            yield (
                code(name),
                service.folder,
                code(declared.key),
                str(declared.partitions),
                describe_retention(DOMAIN_TOPIC),
                codes(declared.types),
                ", ".join(TOPICS[name].readers),
            )


def list_dead_letters() -> Iterator[tuple[str, ...]]:
    retention = describe_retention(DEAD_LETTER_TOPIC)
    for topic in TOPICS.values():
        for reader in topic.readers:
            yield code(topic.dead_letters_of(reader)), reader, str(topic.partitions), retention


def write_internal() -> Iterator[str]:
    if INTERNAL_TOPICS:
        yield "## Internal topics"
        yield "Between the steps of one program: no other program relies on them."
        rows = (
            (code(topic.name), str(topic.partitions), describe_retention(topic.configs))
            for topic in INTERNAL_TOPICS.values()
        )
        yield table(("topic", "partitions", "retention"), rows)


def describe_retention(configs: Mapping[str, str]) -> str:
    if configs["cleanup.policy"] == "compact":
        return "the last value of each key"
    milliseconds = int(configs["retention.ms"])
    return "no limit" if milliseconds < 0 else f"{milliseconds / DAY_MILLISECONDS:g} days"
