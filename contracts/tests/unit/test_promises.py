"""The contracts and the views are those that the services declare."""

from importlib import import_module

from contracts.promises import CONTRACTS, VIEWS
from shared.messaging.topics import TOPICS
from shared.runtime.declarations import load_declarations


def test_each_topic_has_the_contract_of_its_module() -> None:
    topics = load_declarations().topics

    assert [contract.topic for contract in CONTRACTS] == list(topics)
    for contract in CONTRACTS:
        assert contract.topic == import_module(topics[contract.topic].contract).TOPIC
        assert set(contract.public.names) == set(topics[contract.topic].types)
        assert contract.private.names


def test_the_views_are_those_of_readers_that_are_declared() -> None:
    assert {(each.reader, each.topic) for each in VIEWS} == {
        (reader, topic.name)
        for topic in TOPICS.values()
        for reader in topic.readers
        if reader != "analytics-job"  # its columns are Arrow's
    }


def test_the_consumer_of_each_service_has_the_name_of_its_worker() -> None:
    """It is also the consumer group, and part of the names of its dead letter topics."""
    for service in load_declarations().services:
        if not service.has_event_store:
            continue
        main = import_module(f"{service.package}.__main__")
        worker = import_module(f"{service.package}.worker")
        assert main.SERVICE.worker_name == worker.NAME
