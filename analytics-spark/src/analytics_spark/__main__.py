"""python -m analytics_spark api | job | reconciler | migrate | COMMAND; --help lists commands"""

import argparse
import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence

import psycopg
from starlette.routing import BaseRoute

from analytics_spark.job.scratch import make_own_folder
from analytics_spark.operations import commands
from analytics_spark.settings import ApiSettings, ExportSettings, JobSettings, ReconcileSettings
from shared.runtime import migrate_command, processes, telemetry
from shared.web.limits import Rates


async def run_api(arguments: argparse.Namespace) -> None:
    from analytics_spark.serving import api  # without Spark: the api needs a tenth of its memory
    from analytics_spark.serving.bootstrap import open_resources
    from shared.web import api_process

    settings = processes.read_settings(ApiSettings)
    with telemetry.configured("analytics-api", settings):
        async with open_resources(settings) as resources:
            app = api.create_app(
                resources, api_process.create_authenticator(settings), make_page_routes(settings)
            )
            await api_process.serve_api(app, settings, at_stop=resources.feed.close)


def make_page_routes(settings: ApiSettings) -> Sequence[BaseRoute]:
    """The routes of the page; none unless the settings enable it."""
    from analytics_spark.serving import page

    if not settings.has_page:
        return ()
    return page.routes(settings.jaeger_ui_address, Rates(settings.http_requests_per_second_max))


def read_job_settings() -> JobSettings:
    """The settings of a process that runs Spark, which gets folders for this process only."""
    settings = processes.read_settings(JobSettings)
    roots = {"spark_local_dirs": settings.spark_local_dirs, "tmpdir": settings.tmpdir}
    own = {name: make_own_folder(root) for name, root in roots.items() if root is not None}
    return settings.model_copy(update=own)


async def run_job(arguments: argparse.Namespace) -> None:
    from analytics_spark.job.session import begin_session

    settings = read_job_settings()
    # Before anything starts that inherits it: Java, and the Python workers.
    os.nice(settings.niceness)
    begin_session(settings)
    from analytics_spark.job import job

    with telemetry.configured("analytics-job", settings):
        await job.run_job(settings)


async def migrate(arguments: argparse.Namespace) -> None:
    await migrate_command.run(processes.read_settings(ApiSettings), "analytics_spark")


async def run_reconciler(arguments: argparse.Namespace) -> None:
    from analytics_spark.reconciliation import reconciler

    settings = processes.read_settings(ReconcileSettings)
    with telemetry.configured("analytics-reconciler", settings):
        await reconciler.run(settings)


async def run_reconcile(arguments: argparse.Namespace) -> None:
    from analytics_spark.reconciliation import reconciler
    from analytics_spark.reconciliation.reconcile import NotComparable

    settings = processes.read_settings(ReconcileSettings)
    hours = settings.reconcile_hours_max if arguments.hours is None else arguments.hours
    chosen = settings.model_copy(update={"reconcile_hours_max": hours})
    try:
        result = await asyncio.to_thread(reconciler.compare, chosen)
    except (NotComparable, psycopg.Error) as error:
        sys.exit(f"hometown: nothing was compared: {str(error).splitlines()[0]}")
    for difference in result.differences:
        sys.stdout.write(f"{difference}\n")
    sys.stdout.write(f"{reconciler.summarize(result)}\n")
    sys.exit(1 if result.differences else 0)


async def run_aot_cache(arguments: argparse.Namespace) -> None:
    from analytics_spark.operations import aot_cache

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    try:
        await asyncio.to_thread(aot_cache.make, arguments.file.absolute(), arguments.jars)
    except (aot_cache.NoCache, OSError) as error:
        sys.exit(f"hometown: {error}")


async def run_export(arguments: argparse.Namespace) -> None:
    from analytics_spark.operations import export

    settings = processes.read_settings(ExportSettings)
    folder = arguments.to or settings.export_dir
    try:
        done = await asyncio.to_thread(export.export, settings.database_dsn, folder)
    except (export.NotExported, psycopg.Error) as error:
        sys.exit(f"hometown: {str(error).splitlines()[0]}")
    sys.stdout.write(
        f"{done.written} hours written, {done.unchanged} unchanged, {done.removed} removed:"
        f" {folder}\n"
    )


async def run_reprocess(arguments: argparse.Namespace) -> None:
    from analytics_spark.job import job
    from analytics_spark.operations import reprocess

    settings = read_job_settings()
    failures = (*job.FAILURES, reprocess.NothingDone)
    with telemetry.configured("analytics-reprocess", settings):
        await run_in_thread(lambda stop: reprocess.run(settings, arguments, stop), failures)


async def run_rescale(arguments: argparse.Namespace) -> None:
    from analytics_spark.job import job
    from analytics_spark.operations import rescale

    settings = read_job_settings()
    failures = (*job.FAILURES, rescale.NotRescaled)
    with telemetry.configured("analytics-job", settings):
        await run_in_thread(
            lambda stop: rescale.run(settings, arguments.partitions, stop), failures
        )


async def run_in_thread(
    work: Callable[[threading.Event], None], failures: tuple[type[Exception], ...]
) -> None:
    """Run blocking work in a thread. A signal sets its event; an expected failure is one line."""
    from analytics_spark.job.job import get_cause

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        await asyncio.to_thread(work, stop)
    except failures as error:
        sys.exit(f"hometown: {get_cause(error)}")


PROCESSES = {
    "api": run_api,
    "job": run_job,
    "reconciler": run_reconciler,
    "migrate": migrate,
}


def make_parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="analytics_spark", description=__doc__)
    verbs = root.add_subparsers(required=True, metavar="process")
    for name, run in PROCESSES.items():
        verbs.add_parser(name).set_defaults(run=run)
    commands.add_reprocess(verbs).set_defaults(run=run_reprocess)
    commands.add_aot_cache(verbs).set_defaults(run=run_aot_cache)
    commands.add_export(verbs).set_defaults(run=run_export)
    commands.add_reconcile(verbs).set_defaults(run=run_reconcile)
    commands.add_rescale(verbs).set_defaults(run=run_rescale)
    return root


def keep_spark_quiet() -> None:
    """Redirect the standard error that Spark will inherit to /dev/null.

    Spark and its workers log each batch there, which would overwrite the progress line.
    """
    own = os.dup(sys.stderr.fileno())
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    sys.stderr = os.fdopen(own, "w", buffering=1)


def main() -> None:
    arguments = make_parser().parse_args()
    if arguments.run in (run_aot_cache, run_reprocess, run_rescale):
        keep_spark_quiet()
    processes.run(arguments.run(arguments))


if __name__ == "__main__":
    main()
