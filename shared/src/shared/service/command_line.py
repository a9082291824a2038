"""python -m SERVICE COMMAND: its processes, and what operators do to its data."""

import argparse
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import asyncpg

from shared.eventsourcing.history import Stores
from shared.inbox import parked_command
from shared.inbox.consumer import Consumer, DeadLetterWriter
from shared.messaging import kafka
from shared.outbox import adopt, relay_process, replay
from shared.projections import rebuild, versions
from shared.projections.read_models import ReadModel
from shared.runtime import migrate_command, processes, telemetry
from shared.runtime.declarations import load_declarations
from shared.runtime.settings import Settings
from shared.web import idempotency

Run = Coroutine[object, object, None]


class WithPool(Protocol):
    @property
    def pool(self) -> asyncpg.Pool: ...


S = TypeVar("S", bound=Settings)
R = TypeVar("R", bound=WithPool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(Generic[S, R]):
    """What differs from service to service.

    `name` is the first word of the names of its processes; `package` has its migrations.
    `open_resources` takes the settings and the name of the process. `background` returns the
    endless tasks of the worker besides its consumer. `forget_offsets` is the statement that removes
    what the service knows of records in topics that were lost. `run_api` reads settings of its own:
    the api can need secrets that no other process gets.
    """

    name: str
    package: str
    settings: type[S]
    open_resources: Callable[[S, str], AbstractAsyncContextManager[R]]
    stores: Callable[[R], Stores]
    read_models: Sequence[ReadModel]
    create_consumer: Callable[[R, DeadLetterWriter], Consumer]
    run_api: Callable[[], Run]
    forget_offsets: str | None = None
    background: Callable[[R, S], Sequence[Run]] = lambda _resources, _settings: ()

    @property
    def worker_name(self) -> str:
        return f"{self.name}-worker"

    @property
    def relay_name(self) -> str:
        return f"{self.name}-relay"


def main(service: Service[S, R]) -> None:
    """Run what the command line names, to its end."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {service.package}", description=f"The processes of {service.name}-svc."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("api", help="serve HTTP")
    commands.add_parser("relay", help="publish the outbox to Kafka")
    commands.add_parser("worker", help="consume the topics that the service reads")
    commands.add_parser("migrate", help="create and change the tables, as the database's owner")
    for tool in (parked_command, rebuild, versions, replay, adopt):
        tool.add_to(commands)
    processes.run(command_of(service, parser.parse_args()))


def command_of(service: Service[S, R], arguments: argparse.Namespace) -> Run:
    if arguments.command == "api":
        return service.run_api()
    settings = processes.read_settings(service.settings)
    match arguments.command:
        case "relay":
            return relay_process.run_relay(service.relay_name, settings)
        case "worker":
            return run_worker(service, settings)
        case "migrate":
            return migrate_command.run(settings, "shared", service.package)
        case "parked":
            return run_parked(service, settings, arguments)
        case "rebuild":
            return run_rebuild(service, settings, arguments)
        case "switch":
            return versions.run(
                settings.database_dsn, service.read_models, arguments.version, arguments.model
            )
        case "replay":
            return run_replay(service, settings, topics_lost=arguments.topics_lost)
        case "adopt-outbox":
            return adopt.run(settings.database_dsn)
    raise AssertionError(f"the parser knows no {arguments.command}")


async def run_worker(service: Service[S, R], settings: S) -> None:
    # Imported here: its health server takes memory that only workers need.
    from shared.inbox.worker import run_worker as run_consumer

    name = service.worker_name
    with telemetry.configured(name, settings):
        async with service.open_resources(settings, name) as resources:
            await versions.forget_unfilled(resources.pool, service.read_models)
            await run_consumer(
                service.create_consumer(resources, kafka.create_writer(settings.brokers, name)),
                settings,
                *service.background(resources, settings),
                idempotency.forget_periodically(resources.pool),
            )


async def run_parked(service: Service[S, R], settings: S, arguments: argparse.Namespace) -> None:
    name = service.worker_name
    with telemetry.configured(name, settings):
        async with service.open_resources(settings, f"{name}-parked") as resources:
            write_dead_letters = kafka.create_writer(settings.brokers, name)
            consumer = service.create_consumer(resources, write_dead_letters)
            await parked_command.run(arguments, consumer, resources.pool, service.relay_name)


async def run_rebuild(service: Service[S, R], settings: S, arguments: argparse.Namespace) -> None:
    demand_own_topics(service)
    async with service.open_resources(settings, f"{service.name}-rebuild") as resources:
        await rebuild.run(
            settings.database_dsn,
            service.stores(resources),
            service.read_models,
            only_check=arguments.check,
            version=arguments.version,
            name=arguments.model,
        )


def demand_own_topics(service: Service[S, R]) -> None:
    """A rebuild reads the service's own events; it would empty a table that follows others."""
    own = load_declarations().service(service.name).topics
    for model in service.read_models:
        if model.topic not in own:
            sys.exit(
                f"hometown: nothing was rebuilt: {model.table} follows {model.topic},"
                " a topic of another service; remove it from READ_MODELS"
            )


async def run_replay(service: Service[S, R], settings: S, *, topics_lost: bool) -> None:
    forget_offsets = service.forget_offsets if topics_lost else None
    async with service.open_resources(settings, f"{service.name}-replay") as resources:
        await replay.run(settings.database_dsn, service.stores(resources), forget_offsets)
