"""What each service publishes on its topics and what each reader reads there, as declared."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from analytics_spark.job import topics as analytics
from shared.eventsourcing.codec import Codec
from shared.projections.read_models import ReadModel
from shared.runtime.declarations import Declarations, Service, load_declarations


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


def declared_contracts(declarations: Declarations) -> tuple[Contract, ...]:
    """One for each topic: the classes of its module, and those of the `events` next to it."""
    return tuple(
        Contract(
            service=service.folder,
            topic=topic.name,
            key=topic.key,
            public=import_module(topic.contract).CODEC,
            private=import_module(f"{topic.contract.rpartition('.')[0]}.events").CODEC,
        )
        for service in declarations.services
        for topic in service.topics.values()
    )


CONTRACTS = declared_contracts(load_declarations())

CONTRACT_ON = {contract.topic: contract for contract in CONTRACTS}


def view(reader: str, topic: str, codec: Codec[Any]) -> View:
    """A view that has all types of its codec."""
    return View(reader=reader, topic=topic, types=tuple(codec.names), codec=codec)


def own_view(reader: str, model: ReadModel) -> View:
    """What a read model reads of its own service, with the codec of the contract."""
    codec = CONTRACT_ON[model.topic].public
    return View(reader=reader, topic=model.topic, types=model.types, codec=codec)


def declared_views(declarations: Declarations) -> Iterator[View]:
    """The views of other services' topics (`VIEWS` of the declared modules)."""
    for process in declarations.processes:
        for module in process.views:
            for topic, codec in import_module(module).VIEWS:
                yield view(process.name, topic, codec)


def views_of_read_models(service: Service) -> Iterator[View]:
    """What the read models of a service follow; the process that reads the topic fills them."""
    module = f"{service.package}.read_models"
    if find_spec(module) is None:
        return
    for process in service.processes.values():
        for model in import_module(module).READ_MODELS:
            if model.topic in process.reads:
                yield own_view(process.name, model)


VIEWS = (
    *declared_views(load_declarations()),
    *(each for service in load_declarations().services for each in views_of_read_models(service)),
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
