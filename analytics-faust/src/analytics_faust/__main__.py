"""python -m analytics_faust worker"""

import argparse
import sys

from aiokafka.errors import KafkaError

from analytics_faust import api, worker
from analytics_faust.copartitions import NotCopartitioned, check_copartitions
from analytics_faust.service_clients import open_spark
from analytics_faust.settings import FaustSettings
from analytics_faust.transport import run_app, wait_for_end
from shared.inbox.worker import STOP_SECONDS_MAX
from shared.messaging import kafka
from shared.runtime import processes, telemetry
from shared.runtime.settings import DEVELOPMENT
from shared.web import api_process
from shared.web.connections import server_config
from shared.web.health import served


async def run_worker(settings: FaustSettings) -> None:
    """Join, count and serve until SIGTERM or SIGINT."""
    stopping = processes.create_stop_event()
    try:
        await check_copartitions(settings.brokers)
    except (NotCopartitioned, KafkaError) as error:
        sys.exit(f"hometown: {worker.NAME} cannot start: {error or type(error).__name__}")
    write_dead_letters = kafka.create_writer(settings.brokers, worker.NAME)
    program = worker.Program(settings, write_dead_letters)
    async with open_spark(settings.analytics_url, settings.http_ca_file) as spark:
        resources = api.Resources(
            program=program, spark=spark, shows_hours=settings.environment == DEVELOPMENT
        )
        app = api.create_app(resources, api_process.create_authenticator(settings))
        config = server_config(
            app,
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
    parser.add_argument("process", choices=["worker"])
    parser.parse_args()
    processes.run(run())


if __name__ == "__main__":
    main()
