"""python -m things_svc api | relay | worker | migrate | parked | rebuild | replay"""

import argparse
from argparse import Namespace

from shared.inbox import parked_command
from shared.messaging import kafka
from shared.outbox import relay_process, replay
from shared.projections import rebuild
from shared.runtime import migrate_command, processes, telemetry
from shared.web import idempotency
from things_svc import worker
from things_svc.bootstrap import open_resources
from things_svc.read_models import READ_MODELS
from things_svc.settings import ThingsSettings


async def run_api(settings: ThingsSettings) -> None:
    # What only an api needs costs memory: only apis pay.
    from shared.web import api_process
    from things_svc import api

    with telemetry.configured("things-api", settings.otel_exporter_otlp_endpoint):
        async with open_resources(settings, "things-api") as resources:
            app = api.create_app(resources, api_process.authenticator_of(settings))
            await api_process.serve_api(app, settings)


async def run_relay(settings: ThingsSettings) -> None:
    await relay_process.run_relay("things-relay", settings)


async def run_worker(settings: ThingsSettings) -> None:
    from shared.inbox.worker import (
        run_worker as run_consumer,  # Faust costs memory: only workers pay
    )

    with telemetry.configured(worker.NAME, settings.otel_exporter_otlp_endpoint):
        async with open_resources(settings, worker.NAME) as resources:
            write_dead_letter = kafka.single_writer(settings.brokers, worker.NAME)
            await run_consumer(
                worker.create_consumer(resources, write_dead_letter),
                settings,
                idempotency.forget_periodically(resources.pool),
            )


async def migrate(settings: ThingsSettings) -> None:
    await migrate_command.run(settings, "shared", "things_svc")


async def run_parked(settings: ThingsSettings, arguments: Namespace) -> None:
    with telemetry.configured(worker.NAME, settings.otel_exporter_otlp_endpoint):
        async with open_resources(settings, f"{worker.NAME}-parked") as resources:
            write_dead_letter = kafka.single_writer(settings.brokers, worker.NAME)
            consumer = worker.create_consumer(resources, write_dead_letter)
            await parked_command.run(arguments, consumer, resources.pool)


async def run_rebuild(settings: ThingsSettings, arguments: Namespace) -> None:
    async with open_resources(settings, "things-rebuild") as resources:
        await rebuild.run(
            settings.database_dsn,
            [resources.things],
            READ_MODELS,
            only_check=arguments.check,
        )


async def run_replay(settings: ThingsSettings, arguments: Namespace) -> None:
    async with open_resources(settings, "things-replay") as resources:
        await replay.run(settings.database_dsn, [resources.things])


RUNS = {"api": run_api, "relay": run_relay, "worker": run_worker, "migrate": migrate}
TOOLS = {"parked": run_parked, "rebuild": run_rebuild, "replay": run_replay}


def main() -> None:
    parser = argparse.ArgumentParser(prog="things_svc", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in RUNS:
        commands.add_parser(name)
    for tool in (parked_command, rebuild, replay):
        tool.add_to(commands)
    arguments = parser.parse_args()
    settings = processes.read_settings(ThingsSettings)
    if arguments.command in RUNS:
        processes.run(RUNS[arguments.command](settings))
    else:
        processes.run(TOOLS[arguments.command](settings, arguments))


if __name__ == "__main__":
    main()
