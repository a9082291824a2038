"""The AsyncAPI document is one, by the official schema, and says what the services do."""

import json
from copy import deepcopy
from typing import Any

import pytest
from jsonschema import Draft7Validator, ValidationError

from contracts.contract_files import ROOT
from contracts.promises import CONTRACTS
from shared.messaging.topics import TOPICS

DOCUMENT: dict[str, Any] = json.loads((ROOT / "asyncapi.json").read_text())
OFFICIAL = Draft7Validator(json.loads((ROOT / "vendor/asyncapi-3.0.0.json").read_text()))


def test_it_is_valid() -> None:
    OFFICIAL.validate(DOCUMENT)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("asyncapi",), "2.0.0"),
        (("channels", "orders.v1", "messages"), []),
        (("channels", "orders.v1", "bindings", "kafka", "partitions"), 0),
        (("operations", "orders-svc.send.orders.v1", "action"), "publish"),
        (("components", "messages", "order-placed.v1", "payload"), 7),
    ],
)
def test_a_document_that_is_not_valid_is_found(path: tuple[str, ...], value: object) -> None:
    """The negative control: the schema looks at everything, also without a network."""
    broken = deepcopy(DOCUMENT)
    *parents, last = path
    place = broken
    for parent in parents:
        place = place[parent]
    place[last] = value

    with pytest.raises(ValidationError):
        OFFICIAL.validate(broken)


def references(part: Any) -> set[str]:
    match part:
        case {"$ref": str(reference)}:
            return {reference}
        case dict():
            return set().union(*(references(each) for each in part.values()))
        case list():
            return set().union(*(references(each) for each in part))
        case _:
            return set()


def test_every_reference_leads_somewhere() -> None:
    found = references(DOCUMENT)

    assert found
    for reference in found:
        place = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]


def test_every_topic_is_a_channel_with_its_partitions_and_types() -> None:
    channels = DOCUMENT["channels"]

    assert channels.keys() == TOPICS.keys()
    for name, topic in TOPICS.items():
        assert channels[name]["bindings"]["kafka"]["partitions"] == topic.partitions
        assert {each.rpartition(".v")[0] for each in channels[name]["messages"]} == set(topic.types)


def test_every_service_sends_and_every_reader_receives() -> None:
    operations = DOCUMENT["operations"]

    sent = {name for name, each in operations.items() if each["action"] == "send"}
    received = {name for name, each in operations.items() if each["action"] == "receive"}

    assert sent == {f"{each.service}.send.{each.topic}" for each in CONTRACTS}
    assert received == {
        f"{reader}.receive.{topic.name}" for topic in TOPICS.values() for reader in topic.readers
    }
    assert "users-worker.receive.orders.v1" in received


def test_every_type_is_sent_in_its_newest_version() -> None:
    sent = {
        reference.rpartition("/")[2]
        for name, operation in DOCUMENT["operations"].items()
        if ".send." in name
        for reference in references(operation["messages"])
    }

    assert sent == {
        f"{name}.v{contract.public.get_version(name)}"
        for contract in CONTRACTS
        for name in contract.public.names
    }
