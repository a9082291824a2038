"""The AsyncAPI 3.0 document: topics, messages and their headers, who sends and who receives."""

from collections.abc import Mapping
from typing import Any

from contracts.compatibility import Promise
from contracts.event_schemas import NO_REFERENCE, Schema
from contracts.promises import CONTRACT_ON, types_read
from shared.messaging import messages
from shared.messaging.topics import DOMAIN_TOPIC
from shared.runtime import telemetry

KAFKA_BINDING = "0.5.0"

UUID: Schema = {"type": "string", "format": "uuid"}
NUMBER: Schema = {"type": "string", "pattern": "^[0-9]+$"}

HEADERS: dict[str, Schema] = {
    messages.ID: {**UUID, "description": "of the event; the same when it is sent again"},
    messages.TYPE: {"type": "string"},
    messages.SOURCE: {"type": "string", "description": "the service that says it"},
    messages.TIME: {"type": "string", "format": "date-time", "description": "of recording"},
    messages.SPEC: {"const": messages.SPEC_VERSION},
    messages.SUBJECT: {"type": "string", "description": "the record's key"},
    messages.SCHEMA_VERSION: {**NUMBER, "description": "the version of the type"},
    messages.STREAM_ID: UUID,
    messages.STREAM_VERSION: {**NUMBER, "description": "of the event in its stream"},
    messages.PREVIOUS_VERSION: {
        **NUMBER,
        "description": "of the stream's message before this one; 0 for its first",
    },
    messages.CORRELATION_ID: {**UUID, "description": "of the first cause of the whole story"},
    messages.CAUSATION_ID: {**UUID, "description": "of the request or message that led to it"},
    messages.CONTENT: {"const": messages.CONTENT_TYPE},
    telemetry.TRACEPARENT: {"type": "string", "description": "W3C trace context, if there is one"},
}
OPTIONAL = {telemetry.TRACEPARENT}

Examples = Mapping[tuple[str, str, str], Any]
"""A sample by topic, type and version."""


def document(promises: Mapping[str, Promise], examples: Examples) -> dict[str, Any]:
    """All of it, as JSON."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Hometown",
            "version": "1",
            "description": "Public events of Hometown: CloudEvents in binary mode on Kafka.",
        },
        "defaultContentType": messages.CONTENT_TYPE,
        "channels": {topic: channel(topic, promise) for topic, promise in promises.items()},
        "operations": sends(promises) | receives(promises),
        "components": {
            "messages": {
                message_id(name, version): message(topic, name, version, schema, examples)
                for topic, promise in promises.items()
                for name, versions in promise["types"].items()
                for version, schema in versions.items()
            },
            "schemas": {"headers": headers()},
        },
    }


def message_id(name: str, version: str) -> str:
    return f"{name}.v{version}"


def channel(topic: str, promise: Promise) -> dict[str, Any]:
    return {
        "address": topic,
        "messages": {
            message_id(name, version): {
                "$ref": f"#/components/messages/{message_id(name, version)}"
            }
            for name, versions in promise["types"].items()
            for version in versions
        },
        "bindings": {
            "kafka": {
                "topic": topic,
                "partitions": promise["partitions"],
                "topicConfiguration": {
                    "cleanup.policy": [DOMAIN_TOPIC["cleanup.policy"]],
                    "retention.ms": int(DOMAIN_TOPIC["retention.ms"]),
                },
                "bindingVersion": KAFKA_BINDING,
            }
        },
    }


def sends(promises: Mapping[str, Promise]) -> dict[str, Any]:
    """One operation for each topic: its service sends the newest version of each type."""
    return {
        f"{CONTRACT_ON[topic].service}.send.{topic}": operation(
            "send", topic, [(name, max(versions, key=int)) for name, versions in types.items()]
        )
        for topic, types in ((topic, promise["types"]) for topic, promise in promises.items())
    }


def receives(promises: Mapping[str, Promise]) -> dict[str, Any]:
    """One operation for each reader of a topic: it receives every version of the types it reads."""
    return {
        f"{reader}.receive.{topic}": operation(
            "receive",
            topic,
            [(name, version) for name in sorted(wanted) for version in types[name]],
        )
        for (reader, topic), wanted in types_read().items()
        for types in [promises[topic]["types"]]
    }


def operation(action: str, topic: str, types: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{topic}"},
        "messages": [
            {"$ref": f"#/channels/{topic}/messages/{message_id(name, version)}"}
            for name, version in types
        ],
    }


def message(
    topic: str, name: str, version: str, schema: Schema, examples: Examples
) -> dict[str, Any]:
    key = CONTRACT_ON[topic].key
    return {
        "name": name,
        "title": schema["title"],
        "contentType": messages.CONTENT_TYPE,
        "headers": {
            "allOf": [
                {"$ref": "#/components/schemas/headers"},
                {
                    "properties": {
                        messages.TYPE: {"const": name},
                        messages.SCHEMA_VERSION: {"const": version},
                    }
                },
            ]
        },
        "payload": {word: value for word, value in schema.items() if word not in NO_REFERENCE},
        "bindings": {
            "kafka": {
                "key": {**UUID, "description": f"the field `{key}`"},
                "bindingVersion": KAFKA_BINDING,
            }
        },
        "examples": [{"name": "sample", "payload": examples[topic, name, version]}],
    }


def headers() -> Schema:
    """Those of every message: each is text, in UTF-8."""
    return {
        "type": "object",
        "description": "CloudEvents 1.0 in the binary mode of the Kafka protocol binding.",
        "properties": HEADERS,
        "required": [name for name in HEADERS if name not in OPTIONAL],
    }
