"""python -m users_svc api | relay | worker | migrate"""

import argparse

from shared import kafka, postgres, processes, relay_process, telemetry
from users_svc import api, worker
from users_svc.bootstrap import open_resources
from users_svc.settings import UsersSettings


async def run_api(settings: UsersSettings) -> None:
    with telemetry.configured("users-api", settings.otel_exporter_otlp_endpoint):
        async with open_resources(settings, "users-api") as resources:
            await processes.serve_api(api.create_app(resources), settings)


async def run_relay(settings: UsersSettings) -> None:
    await relay_process.run_relay("users-relay", settings)


async def run_worker(settings: UsersSettings) -> None:
    from shared.worker import run_worker as run_consumer  # Faust costs memory: only workers pay

    with telemetry.configured(worker.NAME, settings.otel_exporter_otlp_endpoint):
        async with open_resources(settings, worker.NAME) as resources:
            set_aside = kafka.single_writer(settings.kafka_bootstrap_servers, worker.NAME)
            await run_consumer(worker.create_consumer(resources, set_aside), settings)


async def migrate(settings: UsersSettings) -> None:
    for name in await postgres.migrate(settings.database_dsn, "shared", "users_svc"):
        print(f"applied {name}")  # noqa: T201


RUNS = {"api": run_api, "relay": run_relay, "worker": run_worker, "migrate": migrate}


def main() -> None:
    parser = argparse.ArgumentParser(prog="users_svc", description=__doc__)
    parser.add_argument("process", choices=RUNS)
    arguments = parser.parse_args()
    processes.run(RUNS[arguments.process](processes.read_settings(UsersSettings)))


if __name__ == "__main__":
    main()
