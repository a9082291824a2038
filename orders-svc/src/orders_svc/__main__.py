"""python -m orders_svc api | relay | worker | migrate | parked | rebuild | replay"""

import argparse
from argparse import Namespace
from datetime import timedelta

from orders_svc import worker
from orders_svc.bootstrap import open_resources
from orders_svc.read_models import READ_MODELS
from orders_svc.settings import OrdersSettings
from shared.inbox import parked_command
from shared.messaging import kafka
from shared.outbox import relay_process, replay
from shared.projections import rebuild
from shared.runtime import migrate_command, processes, telemetry
from shared.web import idempotency


async def run_api(settings: OrdersSettings) -> None:
    # What only an api needs costs memory: only apis pay.
    from orders_svc import api
    from orders_svc.service_clients import open_neighbours
    from shared.web import api_process

    with telemetry.configured("orders-api", settings.otel_exporter_otlp_endpoint):
        async with (
            open_resources(settings, "orders-api") as resources,
            open_neighbours(settings.users_url, settings.analytics_url) as service_clients,
        ):
            app = api.create_app(resources, api_process.authenticator_of(settings), service_clients)
            await api_process.serve_api(app, settings)


async def run_relay(settings: OrdersSettings) -> None:
    await relay_process.run_relay("orders-relay", settings)


async def run_worker(settings: OrdersSettings) -> None:
    from shared.inbox.worker import (
        run_worker as run_consumer,  # Faust costs memory: only workers pay
    )

    timeout = timedelta(seconds=settings.order_timeout_seconds)
    with telemetry.configured(worker.NAME, settings.otel_exporter_otlp_endpoint):
        async with open_resources(settings, worker.NAME) as resources:
            write_dead_letter = kafka.create_single_writer(settings.brokers, worker.NAME)
            await run_consumer(
                worker.create_consumer(resources, write_dead_letter),
                settings,
                worker.reject_overdue_for_ever(resources, timeout),
                idempotency.forget_periodically(resources.pool),
            )


async def migrate(settings: OrdersSettings) -> None:
    await migrate_command.run(settings, "shared", "orders_svc")


async def run_parked(settings: OrdersSettings, arguments: Namespace) -> None:
    with telemetry.configured(worker.NAME, settings.otel_exporter_otlp_endpoint):
        async with open_resources(settings, f"{worker.NAME}-parked") as resources:
            write_dead_letter = kafka.create_single_writer(settings.brokers, worker.NAME)
            consumer = worker.create_consumer(resources, write_dead_letter)
            await parked_command.run(arguments, consumer, resources.pool)


async def run_rebuild(settings: OrdersSettings, arguments: Namespace) -> None:
    async with open_resources(settings, "orders-rebuild") as resources:
        await rebuild.run(
            settings.database_dsn,
            [resources.items, resources.orders],
            READ_MODELS,
            only_check=arguments.check,
        )


async def run_replay(settings: OrdersSettings, arguments: Namespace) -> None:
    async with open_resources(settings, "orders-replay") as resources:
        await replay.run(settings.database_dsn, [resources.items, resources.orders])


RUNS = {"api": run_api, "relay": run_relay, "worker": run_worker, "migrate": migrate}
TOOLS = {"parked": run_parked, "rebuild": run_rebuild, "replay": run_replay}


def main() -> None:
    parser = argparse.ArgumentParser(prog="orders_svc", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in RUNS:
        commands.add_parser(name)
    for tool in (parked_command, rebuild, replay):
        tool.add_to(commands)
    arguments = parser.parse_args()
    settings = processes.read_settings(OrdersSettings)
    if arguments.command in RUNS:
        processes.run(RUNS[arguments.command](settings))
    else:
        processes.run(TOOLS[arguments.command](settings, arguments))


if __name__ == "__main__":
    main()
