"""python -m analytics_spark api | job | migrate"""

import argparse
from collections.abc import Sequence

from starlette.routing import BaseRoute

from analytics_spark.settings import ApiSettings, JobSettings
from shared import migrate_command, processes, telemetry
from shared.limits import Rates


async def run_api() -> None:
    from analytics_spark import api  # without Spark: the api needs a tenth of its memory
    from analytics_spark.bootstrap import open_resources
    from shared import api_process

    settings = processes.read_settings(ApiSettings)
    with telemetry.configured("analytics-api", settings.otel_exporter_otlp_endpoint):
        async with open_resources(settings) as resources:
            app = api.create_app(resources, api_process.door_of(settings), page_of(settings))
            await api_process.serve_api(app, settings, at_stop=resources.feed.close)


def page_of(settings: ApiSettings) -> Sequence[BaseRoute]:
    """The page, where the settings let it be shown."""
    from analytics_spark import page

    if not settings.has_page:
        return ()
    return page.routes(settings.jaeger_ui_address, Rates(settings.http_requests_per_second_max))


async def run_job() -> None:
    from analytics_spark import job

    settings = processes.read_settings(JobSettings)
    with telemetry.configured("analytics-job", settings.otel_exporter_otlp_endpoint):
        await job.run_job(settings)


async def migrate() -> None:
    await migrate_command.run(processes.read_settings(ApiSettings), "analytics_spark")


RUNS = {"api": run_api, "job": run_job, "migrate": migrate}


def main() -> None:
    parser = argparse.ArgumentParser(prog="analytics_spark", description=__doc__)
    parser.add_argument("process", choices=RUNS)
    arguments = parser.parse_args()
    processes.run(RUNS[arguments.process]())


if __name__ == "__main__":
    main()
