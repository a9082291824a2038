"""The page of events: the fields of each public type and version, and a sample."""

import json
from collections.abc import Iterator

from contracts.asyncapi import HEADERS, OPTIONAL
from contracts.contract_files import ROOT
from scripts.documentation.markdown import as_json, code, codes, join_parts, table
from scripts.documentation.reference.json_schema import describe_type, write_fields
from shared.messaging.topics import TOPICS
from shared.runtime.declarations import load_declarations


def write() -> str:
    return join_parts(
        "# Events: the schemas and samples",
        "A record of a topic has one public event as its value, in JSON, and the headers of"
        " [CloudEvents](https://cloudevents.io). [Contracts](../contracts/README.md) explains how"
        " an event changes; [asyncapi.json](../contracts/asyncapi.json) is the same for programs.",
        "## Headers",
        "Each is a text.",
        table(("header", "type", "required", "meaning"), list_headers()),
        *write_topics(),
    )


def list_headers() -> Iterator[tuple[str, ...]]:
    for name, schema in HEADERS.items():
        required = "" if name in OPTIONAL else "yes"
        yield code(name), describe_type(schema, {}), required, schema.get("description", "")


def write_topics() -> Iterator[str]:
    for service in load_declarations().services:
        for topic in service.topics.values():
            yield f"## {topic.name}"
            readers = TOPICS[topic.name].readers
            read_by = f", read by {codes(readers)}" if readers else ""
            yield f"Written by {service.folder}{read_by}. The key of a record is `{topic.key}`."
            for name in topic.types:
                yield from write_event(topic.name, name)


def write_event(topic: str, name: str) -> Iterator[str]:
    """Yield each version of a type, from the contracts: `make contracts-check` compares them with
    the code."""
    folder, samples = ROOT / "schemas" / topic, ROOT / "samples" / topic
    versions = sorted(folder.glob(f"{name}.v*.json"), key=lambda path: (len(path.name), path))
    for path in versions:
        yield f"### {path.stem}"
        yield "" if path == versions[-1] else "An earlier version: still read, no longer written."
        yield write_fields(json.loads(path.read_text()), {})
        yield as_json(json.loads((samples / path.name).read_text()))
