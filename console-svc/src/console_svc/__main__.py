"""python -m console_svc serve"""

import argparse
import asyncio
import logging
import sys
from functools import partial

import httpx
from starlette.applications import Starlette

from console_svc.control import Control
from console_svc.guard import Guard
from console_svc.orders import Shop
from console_svc.page import Console, routes
from console_svc.settings import ConsoleSettings
from console_svc.stack import find_stack
from console_svc.watch import Watch
from local_stack import issuer
from local_stack.run_folder import RunFolder
from shared.runtime import processes, telemetry
from shared.runtime.declarations import load_declarations
from shared.runtime.settings import DEVELOPMENT
from shared.web.connections import server_config
from shared.web.health import health_routes, served
from shared.web.request_metrics import RequestMetrics
from shared.web.tls import create_client_context

CONNECTIONS_MAX = 100
"""To one process: the load has most of them."""
STOP_SECONDS_MAX = 3
"""For open requests, when the process is asked to stop."""


async def run_serve() -> None:
    settings = processes.read_settings(ConsoleSettings)
    if settings.environment != DEVELOPMENT:
        sys.exit("hometown: the console is for development: it starts with ENVIRONMENT=development")
    with telemetry.configured("console", settings):
        await serve(settings)


async def serve(settings: ConsoleSettings) -> None:
    """Until SIGTERM or SIGINT."""
    logging.getLogger("httpx").setLevel(logging.WARNING)  # or it logs each scrape
    stop = processes.create_stop_event()
    stack = find_stack(settings)
    async with httpx.AsyncClient(
        trust_env=False,
        verify=create_client_context(settings.http_ca_file),
        limits=httpx.Limits(max_connections=CONNECTIONS_MAX),
    ) as client:
        token = partial(issuer.token, RunFolder(settings.issuer_dir), hours=1)
        shop = Shop(stack.entries, client, token)
        control = Control(stack, shop, client)
        watch = Watch(stack, client)
        console = Console(
            declared=load_declarations(), stack=stack, watch=watch, control=control, shop=shop
        )
        config = server_config(
            RequestMetrics(create_app(console)),
            settings.http_host,
            settings.http_port,
            connections_max=settings.http_connections_max,
            grace=STOP_SECONDS_MAX,
            certificate_file=settings.http_certificate_file,
        )
        async with served(config):
            watching = asyncio.create_task(watch.run(stop))
            try:
                await stop.wait()
            finally:
                await control.close()
                await watching


def create_app(console: Console) -> Starlette:
    app = Starlette(routes=[*health_routes({}), *routes(console)])
    app.add_middleware(Guard)
    return app


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m console_svc", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("serve", help="serve the page until it is stopped")
    parser.parse_args()
    processes.run(run_serve())


if __name__ == "__main__":
    main()
