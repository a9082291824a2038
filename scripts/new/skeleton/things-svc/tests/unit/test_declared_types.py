"""The types in service.toml are those of things.v1, and what is read is declared."""

from shared.messaging.topics import TOPICS
from things_svc import contract, order_messages


def test_the_types_of_the_topic_are_those_of_the_contract() -> None:
    assert set(TOPICS[contract.TOPIC].types) == set(contract.CODEC.names)


def test_what_is_read_of_orders_is_declared_there() -> None:
    assert set(order_messages.CONFIRMED.names) <= set(TOPICS[order_messages.TOPIC].types)
