"""The demonstration: load the sample through the APIs, wait until it is counted, show the answer.

make demo
"""

import argparse
import sys
import time
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
from test_support.system.traces import Span, is_counted, spans_of, waterfall

COUNTED_SECONDS_MAX = 90
TRACE_SECONDS_MAX = 20
NEW_SECONDS_MAX = 120
"""Older orders have their trace by now, or will have none."""

# Every user's own item from home once: see sample/orders.csv.
EXPECTED = {
    "local_buyers": 4,
    "purchases": 4,
    "quantity": 12,
    "amount": "44506.56",
    "all": {"purchases": 16, "quantity": 55, "amount": "203588.40"},
}


def say(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()
    folder = Settings().run_dir
    try:
        demonstrate(Hometown.of_run_folder(folder), folder)
    except FileNotFoundError:
        sys.exit("hometown: the stack is not running; start it with: make up")
    except Failure as failure:
        sys.exit(f"hometown: {failure}")
    except (NotInTime, httpx.HTTPError) as error:
        sys.exit(f"hometown: the demonstration stopped: {error} (see: make status, make logs)")


def demonstrate(hometown: Hometown, folder: Path) -> None:
    if is_past(hometown.hour(HOUR)):
        sys.exit("hometown: the stack has newer orders than the sample's: make clean demo")
    started_at = time.monotonic()
    say("loading the sample through the APIs")
    sample = load(hometown, report=lambda text: say(f"  {text}"))
    loaded_at = time.monotonic()
    hour = wait_until_counted(hometown)
    counted_at = time.monotonic()
    show_hour(hour)
    show_order(hometown, sample)
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
    say("  make status    shows what runs, and where")
    say("  make logs      shows its log")
    say("  make down      stops it and keeps the data")


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


def show_order(hometown: Hometown, sample: Sample) -> None:
    first = rows("orders")[0]
    order = sample.orders[first["user"], first["item"]]
    say()
    say(f"order {order['order_id']} of {first['user']}: {first['quantity']} {first['item']}")
    say(f"  {order['status']}, {order['amount']}, ordered at {order['ordered_at']}")
    say(f"  {hometown.addresses['orders-api']}/v1/orders/{order['order_id']}")
    show_trace(hometown, order["order_id"])


def show_trace(hometown: Hometown, order_id: str) -> None:
    """The trace of the order, if Jaeger is running (it may still be built) and has received it."""
    if not hometown.jaeger_answers():
        say("  no trace: Jaeger is not ready yet (make status); once it is: make trace")
        return
    try:
        [trace, *_] = eventually(
            lambda: hometown.traces_of_order(order_id),
            lambda traces: bool(traces) and is_counted(spans_of(traces[0])),
            what="the trace of the order",
            seconds_max=TRACE_SECONDS_MAX if is_new(order_id) else 0,
        )
    except NotInTime:
        say("  no trace: Jaeger started after the order, or dropped it; another order: make trace")
        return
    print_trace(hometown, trace["traceID"], spans_of(trace))


def print_trace(
    hometown: Hometown, trace_id: str, spans: list[Span], *, with_attributes: bool = False
) -> None:
    say(f"  its trace: {hometown.address_of_trace(trace_id)}")
    for line in waterfall(spans, with_attributes=with_attributes):
        say(f"  {line}")


def is_new(order_id: str) -> bool:
    """Whether the order was placed just now: a UUIDv7 begins with its milliseconds."""
    placed_at_seconds = (UUID(order_id).int >> 80) / 1000
    return time.time() - placed_at_seconds < NEW_SECONDS_MAX


if __name__ == "__main__":
    main()
