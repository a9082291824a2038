"""The demonstration: load the sample through the APIs, wait until it is counted, show the answer.

make demo
docker compose run --rm demo
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import httpx

from fetching.errors import Failure
from local_stack import figures
from local_stack.figures import Figure
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from test_support.system.clients import Hometown, Json
from test_support.system.eventually import NotInTime, eventually
from test_support.system.sample import HOUR, Sample, load, rows
from test_support.system.traces import spans_of, waterfall

PUBLISHED = "PUBLIC_ADDRESSES"
"""Set in a container: the addresses at which readers find the APIs and Jaeger, as JSON."""
COUNTED_SECONDS_MAX = 90
TRACE_SECONDS_MAX = 20
NEW_SECONDS_MAX = 120
"""Older orders have their trace by now, or will have none."""

# Every user's own hometown item once: see sample/orders.csv.
EXPECTED = {
    "local_buyers": 4,
    "purchases": 4,
    "quantity": 12,
    "amount": "44506.56",
    "all": {"purchases": 16, "quantity": 55, "amount": "203588.40"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """What a reader calls next."""

    start: str
    status: str
    logs: str
    down: str
    again: str


MAKE = Commands(
    start="make up",
    status="make status",
    logs="make logs",
    down="make down",
    again="make clean demo",
)
COMPOSE = Commands(
    start="docker compose up --wait",
    status="docker compose ps",
    logs="docker compose logs",
    down="docker compose down",
    again="docker compose down -v, then both commands again",
)


def say(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()
    published: Mapping[str, str] | None = json.loads(os.environ.get(PUBLISHED, "null"))
    commands = MAKE if published is None else COMPOSE
    folder = Settings().run_dir
    try:
        hometown = Hometown.of_run_folder(folder)
        demonstrate(hometown, folder, commands, published or hometown.addresses)
    except (FileNotFoundError, httpx.ConnectError):
        sys.exit(f"hometown: the stack is not running; start it with: {commands.start}")
    except Failure as failure:
        sys.exit(f"hometown: {failure}")
    except (NotInTime, httpx.HTTPError) as error:
        look = f"see: {commands.status}, {commands.logs}"
        sys.exit(f"hometown: the demonstration stopped: {error} ({look})")


def demonstrate(
    hometown: Hometown, folder: Path, commands: Commands, published: Mapping[str, str]
) -> None:
    if is_past(hometown.hour(HOUR)):
        sys.exit(f"hometown: the stack has newer orders than the sample's: {commands.again}")
    started_at = time.monotonic()
    say("loading the sample through the APIs")
    sample = load(hometown, report=lambda text: say(f"  {text}"))
    loaded_at = time.monotonic()
    hour = wait_until_counted(hometown)
    counted_at = time.monotonic()
    show_hour(hour)
    show_order(hometown, sample, published)
    figures.write(
        RunFolder(folder),
        "demo",
        [
            Figure(name="sample loaded", value=loaded_at - started_at, unit="s"),
            Figure(name="sample counted", value=counted_at - started_at, unit="s"),
        ],
    )
    say()
    say(f"The sample took {counted_at - started_at:.1f} s. Everything is still running:")
    if console := published.get("console"):  # part: console
        say(f"  {console}    shows the road of an event, and breaks what you like")
    width = len(commands.status) + 3
    say(f"  {commands.status:{width}} shows what runs, and where")
    say(f"  {commands.logs:{width}} shows its log")
    say(f"  {commands.down:{width}} stops it and keeps the data")


def is_past(hour: Json) -> bool:
    """Whether the hour is final without the sample: its orders would come too late to count."""
    return bool(hour["final"]) and hour["purchases"] == 0


def wait_until_counted(hometown: Hometown) -> Json:
    """The sample's hour as soon as it has all expected values. Raises NotInTime."""
    try:
        return eventually(
            lambda: hometown.hour(HOUR),
            lambda hour: all(hour[name] == value for name, value in EXPECTED.items()),
            what=f"the hour {HOUR:%Y-%m-%d %H}:00 with {EXPECTED}",
            seconds_max=COUNTED_SECONDS_MAX,
        )
    except NotInTime as error:
        watermark = hometown.status()["watermark"]
        raise NotInTime(
            f"{error}; the watermark is {watermark}: orders before it are late"
        ) from error


def show_hour(hour: Json) -> None:
    say()
    say(f"hour {hour['hour']}  ({'final' if hour['final'] else 'provisional'})")
    say(f"  {'origin':10}{'local buyers':>14}{'purchases':>12}{'quantity':>10}{'amount':>12}")
    for cell in [*hour["cells"], hour]:
        say(
            f"  {cell.get('origin', 'all'):10}{cell['local_buyers']:>14}{cell['purchases']:>12}"
            f"{cell['quantity']:>10}{cell['amount']:>12}"
        )
    say("of {purchases} purchases, quantity {quantity}, {amount}".format(**hour["all"]))


def show_order(hometown: Hometown, sample: Sample, published: Mapping[str, str]) -> None:
    first = rows("orders")[0]
    order = sample.orders[first["user"], first["item"]]
    say()
    say(f"order {order['order_id']} of {first['user']}: {first['quantity']} {first['item']}")
    say(f"  {order['status']}, {order['amount']}, ordered at {order['ordered_at']}")
    say(f"  {published['orders-api']}/v1/orders/{order['order_id']}")
    show_trace(hometown, order["order_id"], published)


def show_trace(hometown: Hometown, order_id: str, published: Mapping[str, str]) -> None:
    """The trace of the order, if Jaeger is running (it may still be built) and has received it."""
    if not hometown.jaeger_answers():
        say("  no trace: Jaeger is not ready yet (make status); once it is: make trace")
        return
    try:
        [trace, *_] = eventually(
            lambda: hometown.traces_of_order(order_id),
            lambda traces: bool(traces) and counted(traces[0]),
            what="the trace of the order",
            seconds_max=TRACE_SECONDS_MAX if is_new(order_id) else 0,
        )
    except NotInTime:
        say("  no trace: Jaeger started after the order, or dropped it; another order: make trace")
        return
    address = hometown.address_of_trace(trace["traceID"])
    say(f"  its trace: {address.replace(hometown.addresses['jaeger'], published['jaeger'])}")
    for line in waterfall(spans_of(trace)):
        say(f"  {line}")


def is_new(order_id: str) -> bool:
    """Whether the order was placed just now: a UUIDv7 begins with its milliseconds."""
    placed_at_seconds = (UUID(order_id).int >> 80) / 1000
    return time.time() - placed_at_seconds < NEW_SECONDS_MAX


def counted(trace: Json) -> bool:
    """Whether the trace goes all the way to the cell that counts the order."""
    return any(span.step.operation.startswith("merge cell") for span in spans_of(trace))


if __name__ == "__main__":
    main()
