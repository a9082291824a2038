"""The topics, as the services declare them and as they are created."""

from collections.abc import Iterator, Mapping

from scripts.documentation.reference.tables import code, codes, sections, table
from shared.messaging.topics import DEAD_LETTER_TOPIC, DOMAIN_TOPIC, INTERNAL_TOPICS, TOPICS
from shared.runtime.declarations import load_declarations

DAY_MILLISECONDS = 24 * 60 * 60 * 1000


def write() -> str:
    return sections(
        "# Topics",
        "Each service declares its topics in its `service.toml`, and `python -m"
        " shared.messaging.topics` creates them. [Events](events.md) has the schema of each type.",
        "## Public topics",
        table(
            ("topic", "of", "key", "partitions", "retention", "event types", "readers"),
            public_rows(),
        ),
        "## Dead letters",
        "A reader writes a record that it cannot handle to its dead letter topic, bytes unchanged"
        " and with the reason. The record has the same key and partition.",
        table(("topic", "partitions", "retention", "written by"), dead_letter_rows()),
        "## Internal topics",
        "Between the steps of one program: no other program relies on them.",
        table(
            ("topic", "partitions", "retention"),
            (
                (code(each.name), str(each.partitions), describe_retention(each.configs))
                for each in INTERNAL_TOPICS.values()
            ),
        ),
    )


def public_rows() -> Iterator[tuple[str, ...]]:
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


def dead_letter_rows() -> Iterator[tuple[str, ...]]:
    for topic in TOPICS.values():
        for reader in topic.readers:
            retention = describe_retention(DEAD_LETTER_TOPIC)
            yield code(topic.dead_letters_of(reader)), str(topic.partitions), retention, reader


def describe_retention(configs: Mapping[str, str]) -> str:
    if configs["cleanup.policy"] == "compact":
        return "the last value of each key"
    milliseconds = int(configs["retention.ms"])
    return "no limit" if milliseconds < 0 else f"{milliseconds / DAY_MILLISECONDS:g} days"
