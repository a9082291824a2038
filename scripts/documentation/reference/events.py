"""The public events: the schema of each type and version, and a sample."""

import json
from collections.abc import Iterator
from typing import NamedTuple

from contracts.asyncapi import HEADERS, OPTIONAL
from contracts.contract_files import ROOT
from scripts.documentation.reference.tables import (
    Schema,
    as_json,
    code,
    describe_type,
    field_table,
    sections,
    table,
)


class Event(NamedTuple):
    """A type in one version, with its generated schema and its sample."""

    topic: str
    name: str
    schema: Schema
    sample: object


def read_events() -> Iterator[Event]:
    """Those of the contract files, of which `make contracts-check` verifies that they are current.

    The name of a file is the type and its version, such as `user-moved.v1`.
    """
    for path in sorted((ROOT / "schemas").glob("*/*.json")):
        topic = path.parent.name
        sample = json.loads((ROOT / "samples" / topic / path.name).read_text())
        yield Event(topic, path.stem, json.loads(path.read_text()), sample)


def write() -> str:
    return sections(
        "# Events",
        "A record of a topic has the JSON of one public event as its value, and the headers of"
        " CloudEvents. [Contracts](../contracts/README.md) explains how an event changes, and"
        " [asyncapi.json](../contracts/asyncapi.json) has all of it for programs.",
        "## Headers",
        "Each is text.",
        table(
            ("header", "type", "required", "meaning"),
            (
                (
                    code(name),
                    describe_type(schema, {}),
                    "" if name in OPTIONAL else "yes",
                    schema.get("description", ""),
                )
                for name, schema in HEADERS.items()
            ),
        ),
        *write_events(),
    )


def write_events() -> Iterator[str]:
    topic = None
    for event in read_events():
        if event.topic != topic:
            topic = event.topic
            yield f"## {topic}"
        yield f"### {event.name}"
        yield field_table(event.schema, {})
        yield as_json(event.sample)
