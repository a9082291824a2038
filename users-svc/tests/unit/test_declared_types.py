"""The declared types of users.v1 are exactly those that users-svc publishes."""

from shared.messaging.topics import TOPICS
from users_svc import contract, order_messages


def test_the_types_of_the_topic_are_those_of_the_contract() -> None:
    assert set(TOPICS[contract.TOPIC].types) == set(contract.CODEC.names)


def test_what_is_read_of_orders_is_declared_there() -> None:
    read = {name for _, codec in order_messages.VIEWS for name in codec.names}

    assert read <= set(TOPICS[order_messages.TOPIC].types)
