"""python -m observer_svc watch | lag"""

import argparse
import sys
from datetime import UTC, datetime

import httpx
from pydantic import ValidationError

from observer_svc import table, watch
from observer_svc.report import JSON
from observer_svc.settings import WatchSettings, create_settings
from observer_svc.states import State
from shared.runtime import processes, telemetry
from shared.runtime.declarations import load_declarations, store_url

REQUEST_SECONDS_MAX = 10


async def run_watch() -> None:
    settings = processes.read_settings(create_settings())
    stores = {
        name: str(getattr(settings, store_url(name))) for name in load_declarations().databases
    }
    with telemetry.configured("observer", settings):
        await watch.run(settings, stores)


def show_lag(address: str, *, as_json: bool) -> int:
    """Print what the observer has measured last; the exit status: 1 when something has stopped, or
    could not be measured."""
    try:
        response = httpx.get(f"http://{address}/lag", timeout=REQUEST_SECONDS_MAX, trust_env=False)
        response.raise_for_status()
        report = JSON.validate_json(response.content)
    except (httpx.HTTPError, ValidationError) as error:
        sys.exit(f"hometown: the observer does not respond: {error}; `make status` shows why")
    silence = (datetime.now(UTC) - report.measured_at).total_seconds()
    if silence > watch.SILENCE_SECONDS_MAX:
        sys.exit(f"hometown: the observer has not measured for {silence:.0f} s; see `make logs`")
    text = f"{response.text}\n" if as_json else table.format_report(report)
    sys.stdout.write(text)
    is_measured = not any(report.servers.values())
    return 0 if is_measured and report.state is not State.STOP else 1


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m observer_svc", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("watch", help="measure until it is stopped")
    lag = commands.add_parser("lag", help="print what the observer has measured last")
    default = WatchSettings.model_fields["http_port"].default
    lag.add_argument("--address", default=f"127.0.0.1:{default}", help="host:port of the observer")
    lag.add_argument("--json", action="store_true", help="for programs")
    arguments = parser.parse_args()
    if arguments.command == "lag":
        sys.exit(show_lag(arguments.address, as_json=arguments.json))
    processes.run(run_watch())


if __name__ == "__main__":
    main()
