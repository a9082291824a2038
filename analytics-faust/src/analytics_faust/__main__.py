"""python -m analytics_faust worker | reset"""

import argparse
import sys

from aiokafka.errors import KafkaError

from analytics_faust import api, reset, worker
from analytics_faust.copartitions import NotCopartitioned, check_copartitions
from analytics_faust.service_clients import open_spark
from analytics_faust.settings import FaustSettings
from shared.inbox.worker import STOP_SECONDS_MAX, run_app, wait_for_end
from shared.messaging import kafka
from shared.runtime import processes, telemetry
from shared.runtime.settings import DEVELOPMENT
from shared.web import api_process
from shared.web.connections import server_config
from shared.web.health import served
from shared.web.request_metrics import RequestMetrics


async def run_worker(settings: FaustSettings) -> None:
    """Join, count and serve until SIGTERM or SIGINT."""
    stopping = processes.create_stop_event()
    try:
        await check_copartitions(settings.brokers)
    except (NotCopartitioned, KafkaError) as error:
        sys.exit(f"hometown: {worker.NAME} cannot start: {error or type(error).__name__}")
    write_dead_letter = kafka.create_single_writer(settings.brokers, worker.NAME)
    program = worker.Program(settings, write_dead_letter)
    async with open_spark(settings.analytics_url, settings.http_ca_file) as spark:
        resources = api.Resources(
            program=program, spark=spark, shows_hours=settings.environment == DEVELOPMENT
        )
        app = api.create_app(resources, api_process.create_authenticator(settings))
        config = server_config(
            RequestMetrics(app),
            settings.http_host,
            settings.http_port,
            connections_max=settings.http_connections_max,
            certificate_file=settings.http_certificate_file,
        )
        with processes.bounded_stop(STOP_SECONDS_MAX) as begin_stop:
            async with served(config), run_app(program.app):
                try:
                    await wait_for_end(program.app, stopping)
                finally:
                    begin_stop()


async def run() -> None:
    settings = processes.read_settings(FaustSettings)
    with telemetry.configured(worker.NAME, settings):
        await run_worker(settings)


def main() -> None:
    parser = argparse.ArgumentParser(prog="analytics_faust", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("worker", help="join, count, and serve the answer")
    text = "forget all that was counted, so that the next start counts every record again"
    commands.add_parser("reset", help=text, description=f"{text}; refused while a worker runs")
    if parser.parse_args().command == "reset":
        processes.run(reset.run(processes.read_settings(FaustSettings)))
    else:
        processes.run(run())


if __name__ == "__main__":
    main()
