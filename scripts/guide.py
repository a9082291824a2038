"""What `make demo`, `make trace` and similar commands print besides their answer."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from fetching.errors import Failure
from local_stack.settings import Settings
from shared.runtime.declarations import load_declarations
from test_support.system.clients import Hometown
from test_support.system.traces import Span, waterfall

ADDRESSES = "PUBLISHED_ADDRESSES"
"""Set in a container: the addresses that a browser uses, by process, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """What a reader can call next, for one way to run the stack."""

    start: str
    status: str
    lag: str
    logs: str
    token: str
    trace: str
    down: str
    again: str
    """Shows the sample in a stack that has newer orders."""


COMPOSE = Commands(
    start="docker compose up",
    status="docker compose ps",
    lag="docker compose logs analytics-job",
    logs="docker compose logs",
    token="docker compose run --rm token clerk",  # noqa: S106 - a command
    trace="docker compose run --rm trace",
    down="docker compose down",
    again="docker compose down -v, which removes all data, and docker compose up",
)


def is_in_container() -> bool:
    return ADDRESSES in os.environ


def find_commands() -> Commands:
    if is_in_container():
        return COMPOSE
    way = Settings().way
    stack = "" if way == "processes" else f" in={way}"
    return Commands(
        start=f"make up{stack}",
        status=f"make status{stack}",
        lag=f"make lag{stack}",
        logs=f"make logs{stack}",
        token=f"make token as=clerk{stack}",
        trace=f"make trace{stack}",
        down=f"make down{stack}",
        again=f"make clean demo{stack}, which removes all data",
    )


@contextmanager
def exit_with_reason(what: str, *reasons: type[Exception]) -> Iterator[None]:
    """End the program with one line on standard error if the stack does not run or fails inside.

    Args:
        what: what there is not, if an API refuses or does not respond.
        reasons: further exceptions whose message is the line.
    """
    commands = find_commands()
    expected: tuple[type[Exception], ...] = (Failure, *reasons)
    try:
        yield
    except (FileNotFoundError, httpx.ConnectError):
        sys.exit(f"hometown: the stack is not running, or not all of it: {commands.start}")
    except expected as reason:
        sys.exit(f"hometown: {reason}")
    except httpx.HTTPError as error:
        sys.exit(f"hometown: {what}: {error} (see: {commands.status})")


def find_addresses(hometown: Hometown) -> Mapping[str, str]:
    """Where the reader's browser finds the processes."""
    published: Mapping[str, str] | None = json.loads(os.environ.get(ADDRESSES, "null"))
    return hometown.addresses if published is None else published


def say(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def print_trace(
    hometown: Hometown, trace_id: str, spans: list[Span], *, with_attributes: bool = False
) -> None:
    address = find_addresses(hometown)["jaeger"] + hometown.path_of_trace(trace_id)
    say(f"  its trace: {address}")
    for line in waterfall(spans, with_attributes=with_attributes):
        say(f"  {line}")


def print_order_address(hometown: Hometown, order_id: str) -> None:
    say(f"  {find_addresses(hometown)['orders-api']}/v1/orders/{order_id}")


def print_places(hometown: Hometown) -> None:
    """Print where to look, and what to call next."""
    addresses, commands = find_addresses(hometown), find_commands()
    apis = [
        each.name
        for each in load_declarations().processes
        if each.public and not each.profile and each.name in addresses
    ]
    jaeger = {addresses["jaeger"]: "Jaeger: each order is one trace"}
    say()
    say("Where to look:")
    print_rows(
        {
            addresses["analytics-api"]: "the hours, live",
            **(jaeger if hometown.jaeger_answers() else {}),
            **{f"{addresses[name]}/docs": f"{name}: requests to try" for name in apis},
        }
    )
    say("Commands:")
    print_rows(
        {
            commands.trace: "places an order and prints its trace",
            commands.token: "prints a token for requests",
            commands.status: "shows what runs, and where",
            commands.logs: "shows its log",
            commands.down: "stops it and keeps the data",
        }
    )


def print_rows(rows: Mapping[str, str]) -> None:
    width = max(map(len, rows))
    for name, text in rows.items():
        say(f"  {name:{width}}   {text}")
