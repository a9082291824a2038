"""python -m observer_svc watch | canary | lag"""

import argparse
import sys

import httpx

from observer_svc import canary, table, watch
from observer_svc.settings import CanarySettings, WatchSettings, create_settings, name_store_url
from shared.runtime import processes, telemetry
from shared.runtime.declarations import load_declarations

REQUEST_SECONDS_MAX = 10


async def run_watch() -> None:
    settings = processes.read_settings(create_settings())
    stores = {
        name: str(getattr(settings, name_store_url(name))) for name in load_declarations().databases
    }
    with telemetry.configured("observer", settings):
        await watch.run(settings, stores)


async def run_canary() -> None:
    settings = processes.read_settings(CanarySettings)
    with telemetry.configured("canary", settings):
        await canary.run(settings)


def show_lag(address: str) -> None:
    """Print what the observer has measured last; exits with one line when it does not respond."""
    try:
        response = httpx.get(f"http://{address}/metrics", timeout=REQUEST_SECONDS_MAX)
        response.raise_for_status()
    except httpx.HTTPError as error:
        sys.exit(f"hometown: the observer does not respond: {error}; `make status` shows why")
    sys.stdout.write(table.format_lags(response.text))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m observer_svc", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("watch", help="measure until it is stopped")
    commands.add_parser("canary", help="place an order each minute until it is stopped")
    lag = commands.add_parser("lag", help="print what the observer has measured last")
    default = WatchSettings.model_fields["http_port"].default
    lag.add_argument("--address", default=f"127.0.0.1:{default}", help="host:port of the observer")
    arguments = parser.parse_args()
    if arguments.command == "lag":
        show_lag(arguments.address)
    else:
        processes.run(run_canary() if arguments.command == "canary" else run_watch())


if __name__ == "__main__":
    main()
