"""python -m orders_svc api | relay | worker | migrate"""

import argparse
from datetime import timedelta

from orders_svc import api, worker
from orders_svc.bootstrap import open_resources
from orders_svc.settings import OrdersSettings
from shared import kafka, postgres, processes, relay_process, telemetry


async def run_api(settings: OrdersSettings) -> None:
    with telemetry.configured("orders-api", settings.otel_exporter_otlp_endpoint):
        async with open_resources(settings, "orders-api") as resources:
            await processes.serve_api(api.create_app(resources), settings)


async def run_relay(settings: OrdersSettings) -> None:
    await relay_process.run_relay("orders-relay", settings)


async def run_worker(settings: OrdersSettings) -> None:
    from shared.worker import run_worker as run_consumer  # Faust costs memory: only workers pay

    timeout = timedelta(seconds=settings.order_timeout_seconds)
    with telemetry.configured(worker.NAME, settings.otel_exporter_otlp_endpoint):
        async with open_resources(settings, worker.NAME) as resources:
            set_aside = kafka.single_writer(settings.kafka_bootstrap_servers, worker.NAME)
            await run_consumer(
                worker.create_consumer(resources, set_aside),
                settings,
                worker.reject_overdue_for_ever(resources, timeout),
            )


async def migrate(settings: OrdersSettings) -> None:
    for name in await postgres.migrate(settings.database_dsn, "shared", "orders_svc"):
        print(f"applied {name}")  # noqa: T201


RUNS = {"api": run_api, "relay": run_relay, "worker": run_worker, "migrate": migrate}


def main() -> None:
    parser = argparse.ArgumentParser(prog="orders_svc", description=__doc__)
    parser.add_argument("process", choices=RUNS)
    arguments = parser.parse_args()
    processes.run(RUNS[arguments.process](processes.read_settings(OrdersSettings)))


if __name__ == "__main__":
    main()
