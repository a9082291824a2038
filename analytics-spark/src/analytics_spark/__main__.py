"""python -m analytics_spark api | job | migrate"""

import argparse

from analytics_spark.settings import ApiSettings, JobSettings
from shared import migrate_command, processes, telemetry


async def run_api() -> None:
    from analytics_spark import api  # without Spark: the api needs a tenth of its memory
    from analytics_spark.bootstrap import open_resources
    from shared import api_process

    settings = processes.read_settings(ApiSettings)
    with telemetry.configured("analytics-api", settings.otel_exporter_otlp_endpoint):
        async with open_resources(settings) as resources:
            app = api.create_app(resources, api_process.door_of(settings))
            await api_process.serve_api(app, settings, at_stop=resources.feed.close)


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
