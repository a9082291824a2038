"""The declared types of each topic are exactly those that orders-svc publishes."""

import orders_svc.item.contract
import orders_svc.order.contract
from orders_svc import user_messages
from shared.messaging.topics import TOPICS


def test_the_types_of_the_topics_are_those_of_the_contracts() -> None:
    orders, items = orders_svc.order.contract, orders_svc.item.contract

    assert set(TOPICS[orders.TOPIC].types) == set(orders.CODEC.names)
    assert set(TOPICS[items.TOPIC].types) == set(items.CODEC.names)


def test_what_is_read_of_users_is_declared_there() -> None:
    assert set(user_messages.CODEC.names) <= set(TOPICS[user_messages.TOPIC].types)
