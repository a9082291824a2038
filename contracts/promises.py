"""What each service says on its topics, and what each reader reads there: the one list of both."""

from dataclasses import dataclass
from typing import Any

import orders_svc.item.contract
import orders_svc.item.events
import orders_svc.order.contract
import orders_svc.order.events
import orders_svc.read_models
import orders_svc.user_messages
import orders_svc.worker
import users_svc.contract
import users_svc.events
import users_svc.order_messages
import users_svc.read_models
import users_svc.worker
from analytics_faust import messages as by_arrival
from analytics_spark.job import topics as analytics
from shared.eventsourcing.codec import Codec
from shared.projections.read_models import ReadModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What a service says on a topic; each message's key is its field `key`."""

    service: str
    topic: str
    key: str
    public: Codec[Any]
    private: Codec[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a reader makes of some types of a topic, with a codec of its own."""

    reader: str
    topic: str
    types: tuple[str, ...]
    codec: Codec[Any]


CONTRACTS = (
    Contract(
        service="users-svc",
        topic=users_svc.contract.TOPIC,
        key="user_id",
        public=users_svc.contract.CODEC,
        private=users_svc.events.CODEC,
    ),
    Contract(
        service="orders-svc",
        topic=orders_svc.item.contract.TOPIC,
        key="item_id",
        public=orders_svc.item.contract.CODEC,
        private=orders_svc.item.events.CODEC,
    ),
    Contract(
        service="orders-svc",
        topic=orders_svc.order.contract.TOPIC,
        key="user_id",
        public=orders_svc.order.contract.CODEC,
        private=orders_svc.order.events.CODEC,
    ),
)

CONTRACT_ON = {contract.topic: contract for contract in CONTRACTS}


def view(reader: str, topic: str, codec: Codec[Any]) -> View:
    """A view that has all types of its codec."""
    return View(reader=reader, topic=topic, types=tuple(codec.names), codec=codec)


def own_view(reader: str, model: ReadModel) -> View:
    """What a read model reads of its own service, with the codec of the contract."""
    codec = CONTRACT_ON[model.topic].public
    return View(reader=reader, topic=model.topic, types=model.types, codec=codec)


USERS_WORKER, ORDERS_WORKER = users_svc.worker.NAME, orders_svc.worker.NAME
FAUST_READER = "analytics-faust"

VIEWS = (
    view(USERS_WORKER, users_svc.order_messages.TOPIC, users_svc.order_messages.PLACED),
    view(USERS_WORKER, users_svc.order_messages.TOPIC, users_svc.order_messages.DECIDED),
    view(ORDERS_WORKER, orders_svc.user_messages.TOPIC, orders_svc.user_messages.CODEC),
    view(FAUST_READER, by_arrival.USERS, by_arrival.USER_FACTS),
    view(FAUST_READER, by_arrival.ITEMS, by_arrival.ITEM_FACTS),
    view(FAUST_READER, by_arrival.ORDERS, by_arrival.ORDER_FACTS),
    *(own_view(USERS_WORKER, model) for model in users_svc.read_models.READ_MODELS),
    *(own_view(ORDERS_WORKER, model) for model in orders_svc.read_models.READ_MODELS),
)

SPARK_READER = "analytics-job"
SPARK_TOPICS = (analytics.USERS, analytics.ITEMS, analytics.ORDERS)
"""What analytics reads, as Arrow types instead of classes."""


def types_read() -> dict[tuple[str, str], frozenset[str]]:
    """The types that each reader cares about, by reader and topic."""
    read: dict[tuple[str, str], frozenset[str]] = {}
    for each in VIEWS:
        before = read.get((each.reader, each.topic), frozenset())
        read[each.reader, each.topic] = before.union(each.types)
    for topic in SPARK_TOPICS:
        declared = CONTRACT_ON[topic.name].public.names
        read[SPARK_READER, topic.name] = topic.types.intersection(declared)
    return read
