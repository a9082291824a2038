"""The demonstration: load the sample through the APIs, wait until it is counted, show the answer.

make demo
docker compose up
"""

import argparse
import sys
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from uuid import UUID

import httpx

from fetching.errors import Failure
from local_stack import figures
from local_stack.figures import Figure
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from scripts.guide import (
    find_commands,
    is_in_container,
    print_order_address,
    print_places,
    print_trace,
    say,
)
from test_support.system.clients import Hometown, Json, sum_lag
from test_support.system.eventually import NotInTime, eventually
from test_support.system.sample import HOUR, load, rows
from test_support.system.traces import is_counted, spans_of

START_SECONDS_MAX = 300
"""Of the APIs, when an engine that has started itself starts all containers at once."""
COUNTED_SECONDS_MAX = 300
READ_SECONDS_MAX = 10
PAGE = 100
"""Of all orders, the first ones: the sample's are among them unless it was loaded late."""
TRACE_SECONDS_MAX = 20
NEW_SECONDS_MAX = 120
"""Older orders have their trace by now, or will have none."""

FIRST = rows("orders")[0]
"""The order that is shown."""

# Every user's own item from home once: see sample/orders.csv.
EXPECTED = {
    "local_buyers": 4,
    "purchases": 4,
    "quantity": 12,
    "amount": "44506.56",
    "all": {"purchases": 16, "quantity": 55, "amount": "203588.40"},
}


class NoSample(Exception):
    """The sample cannot be shown; the message has the reason."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()
    folder, commands = Settings().run_dir, find_commands()
    try:
        hometown = Hometown.of_run_folder(folder)
        if is_in_container():
            wait_until_ready(hometown)
        show_or_explain(hometown, folder)
        print_places(hometown)
    except (FileNotFoundError, httpx.ConnectError):
        sys.exit(f"hometown: the stack is not running, or not all of it: {commands.start}")
    except (Failure, NoSample) as reason:
        sys.exit(f"hometown: {reason}")
    except (NotInTime, httpx.HTTPError) as error:
        look = f"see: {commands.status}, {commands.logs}"
        sys.exit(f"hometown: the demonstration stopped: {error} ({look})")


def wait_until_ready(hometown: Hometown) -> None:
    """Wait until analytics answers, whatever it answers. Raises NotInTime."""

    def answers() -> bool:
        try:
            hometown.status()
        except httpx.HTTPStatusError as error:
            return not error.response.is_server_error
        return True

    eventually(answers, bool, what="the hours are served", seconds_max=START_SECONDS_MAX)


def show_or_explain(hometown: Hometown, folder: Path) -> None:
    """As `demonstrate`; in a container, a reason against it is shown instead.

    A container that ended with an error would start again, with the same end, and would be one for
    `docker compose up --wait`; but nothing is wrong, and the sample is not what was asked for.
    """
    try:
        demonstrate(hometown, folder)
    except NoSample as reason:
        if not is_in_container():
            raise
        say(f"{reason}; HOMETOWN_DEMO=0 leaves it out")


def demonstrate(hometown: Hometown, folder: Path) -> None:
    """Show the sample's hour, after loading the sample unless it was loaded before.

    Raises:
        NoSample: the APIs do not accept it.
        NotInTime: it is not counted.
        httpx.HTTPError: a request was refused, or not answered.
    """
    hour = read_hour(hometown)
    loaded = find_loaded(hometown)
    order = next(iter(loaded), None)
    if is_expected(hour) or len(loaded) == len(rows("orders")):
        say("the sample was loaded before")
        if not is_expected(hour):  # it was changed, or is not counted yet
            wait_until_read(hometown, READ_SECONDS_MAX)
            hour = read_hour(hometown)
    elif is_past(hour):
        again = find_commands().again
        raise NoSample(f"the stack has newer orders than the sample's; for the sample: {again}")
    else:
        hour, order = count_sample(hometown, folder)
    show_hour(hour)
    if not is_expected(hour):
        say(
            "it has changed since: with the sample alone, {local_buyers} local buyers, "
            "{purchases} purchases, quantity {quantity}, {amount}".format(**EXPECTED)
        )
    if order is not None:
        show_order(hometown, order)


def read_hour(hometown: Hometown) -> Json:
    """The sample's hour as it is now. Raises NoSample if the stack has another issuer of tokens."""
    try:
        return hometown.hour(HOUR)
    except httpx.HTTPStatusError as error:
        if error.response.status_code != httpx.codes.UNAUTHORIZED:
            raise
        raise NoSample("the sample is for development: the APIs refuse its tokens") from error


def find_loaded(hometown: Hometown) -> list[Json]:
    """The orders of the sample, in their sequence.

    Loading again would find them too, but only as long as the APIs know repeated requests.
    """
    times = [datetime.fromisoformat(row["ordered_at"]) for row in rows("orders")]
    orders = hometown.list_orders(limit=PAGE)["orders"]
    found = {datetime.fromisoformat(order["ordered_at"]): dict(order) for order in orders}
    return [found[at] for at in times if at in found]


def wait_until_read(hometown: Hometown, seconds_max: float) -> None:
    """Wait until all records until now are counted; under load there are always more."""
    with suppress(NotInTime):
        eventually(
            hometown.status,
            lambda status: sum_lag(status) == 0,
            what="no lag",
            seconds_max=seconds_max,
        )


def count_sample(hometown: Hometown, folder: Path) -> tuple[Json, Json]:
    """Load the sample and wait until it is counted; its hour, and its first order."""
    started_at = time.monotonic()
    say("loading the sample through the APIs")
    sample = load(hometown, report=lambda text: say(f"  {text}"))
    loaded_at = time.monotonic()
    hour = wait_until_counted(hometown)
    counted_at = time.monotonic()
    say(f"  counted after {counted_at - started_at:.1f} s")
    measured = [
        Figure(name="sample loaded", value=loaded_at - started_at, unit="s"),
        Figure(name="sample counted", value=counted_at - started_at, unit="s"),
    ]
    if not is_in_container():  # there, the folder is read-only
        figures.write(RunFolder(folder), "demo", measured)
    return hour, sample.orders[FIRST["user"], FIRST["item"]]


def is_expected(hour: Json) -> bool:
    """Whether the sample is counted, and nothing else."""
    return all(hour[name] == value for name, value in EXPECTED.items())


def is_past(hour: Json) -> bool:
    """Whether the hour is final without the sample: its orders would come too late to count."""
    return bool(hour["final"]) and hour["purchases"] == 0


def wait_until_counted(hometown: Hometown) -> Json:
    """The sample's hour as soon as it has all expected values. Raises NotInTime."""
    try:
        return eventually(
            lambda: hometown.hour(HOUR),
            is_expected,
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


def show_order(hometown: Hometown, order: Json) -> None:
    say()
    say(f"order {order['order_id']} of {FIRST['user']}: {FIRST['quantity']} {FIRST['item']}")
    say(f"  {order['status']}, {order['amount']}, ordered at {order['ordered_at']}")
    print_order_address(hometown, order["order_id"])
    show_trace(hometown, order["order_id"])


def show_trace(hometown: Hometown, order_id: str) -> None:
    """The trace of the order, if Jaeger is running (it may still be built) and has received it."""
    commands = find_commands()
    if not hometown.jaeger_answers():
        say(f"  no trace: Jaeger is not ready yet ({commands.status}); then: {commands.trace}")
        return
    try:
        [trace, *_] = eventually(
            lambda: hometown.traces_of_order(order_id),
            lambda traces: bool(traces) and is_counted(spans_of(traces[0])),
            what="the trace of the order",
            seconds_max=TRACE_SECONDS_MAX if is_new(order_id) else 0,
        )
    except NotInTime:
        say("  no trace: Jaeger started after the order, or dropped it")
        say(f"  another order: {commands.trace}")
        return
    print_trace(hometown, trace["traceID"], spans_of(trace))


def is_new(order_id: str) -> bool:
    """Whether the order was placed just now: a UUIDv7 begins with its milliseconds."""
    placed_at_seconds = (UUID(order_id).int >> 80) / 1000
    return time.time() - placed_at_seconds < NEW_SECONDS_MAX


if __name__ == "__main__":
    main()
