"""Place an order, wait until it is counted, and print its trace; or print the trace of an id.

make trace
make trace id=0af7651916cd43dd8448eb211c80319c
"""

import argparse
import sys
import time
from datetime import datetime, timedelta

import httpx

from fetching.errors import Failure
from local_stack.settings import Settings
from scripts.demo import counted, say
from test_support.system.clients import Hometown, rfc3339
from test_support.system.eventually import NotInTime, eventually
from test_support.system.sample import HOUR, SINCE
from test_support.system.traces import Span, spans_of, waterfall

JAEGER_SECONDS_MAX = 60
TRACE_SECONDS_MAX = 60
SETTLED_SECONDS = 5
"""Without a new span; a process sends its own each half second."""
AFTER_THE_SAMPLE = timedelta(hours=1)
"""An hour of its own, in which an order makes none of the sample late."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--id", help="of a trace, such as the trace_id of an event")
    trace_id = parser.parse_args().id
    try:
        hometown = Hometown.of_run_folder(Settings().run_dir)
        if trace_id:
            show_trace(hometown, trace_id)
        else:
            show(hometown)
    except FileNotFoundError:
        sys.exit("hometown: the stack is not running; start it with: make up")
    except Failure as failure:
        sys.exit(f"hometown: {failure}")
    except (NotInTime, httpx.HTTPError) as error:
        sys.exit(f"hometown: there is no trace: {error} (see: make status, make logs)")


def show(hometown: Hometown) -> None:
    """Place an order and print its trace, whatever was in Jaeger before."""
    eventually(
        hometown.jaeger_answers,
        lambda responds: responds,
        what="Jaeger responds",
        seconds_max=JAEGER_SECONDS_MAX,
    )
    order_id = place(hometown)
    order = hometown.wait_for_decision(order_id)
    say(f"order {order_id}: {order['status']}, {order['amount']}")
    say(f"  {hometown.addresses['orders-api']}/v1/orders/{order_id}")
    [trace, *_] = eventually(
        lambda: hometown.traces_of_order(order_id),
        lambda traces: bool(traces) and counted(traces[0]),
        what="the trace of the order up to its cell",
        seconds_max=TRACE_SECONDS_MAX,
    )
    say(f"  its trace: {hometown.address_of_trace(trace['traceID'])}")
    for line in waterfall(spans_of(trace)):
        say(f"  {line}")


def show_trace(hometown: Hometown, trace_id: str) -> None:
    """Print a trace with the attributes of its spans, as soon as it has all of them."""
    since = {0: time.monotonic()}
    """When there was this number of spans for the first time."""

    def look() -> list[Span]:
        trace = hometown.trace(trace_id)
        spans = spans_of(trace) if trace else []
        since.setdefault(len(spans), time.monotonic())
        return spans

    spans = eventually(
        look,
        lambda found: bool(found) and time.monotonic() - since[len(found)] >= SETTLED_SECONDS,
        what=f"trace {trace_id}",
        seconds_max=TRACE_SECONDS_MAX,
    )
    say(hometown.address_of_trace(trace_id))
    for line in waterfall(spans, with_attributes=True):
        say(f"  {line}")


def place(hometown: Hometown) -> str:
    """Place an order of a user and an item that all these orders share; its id."""
    since = rfc3339(SINCE)
    user = hometown.register_user(
        key="trace/user",
        name="Trace",
        address="BJ",
        gender="female",
        credit_limit="100000.00",
        effective_at=since,
    )
    item = hometown.list_item(
        key="trace/item",
        name="pen",
        type="pen",
        origin="BJ",
        price="1.00",
        effective_at=since,
    )
    ordered_at = find_time(hometown)
    placed = hometown.place_order(user["user_id"], [(item["item_id"], 1)], ordered_at)
    return str(placed["order_id"])


def find_time(hometown: Hometown) -> datetime:
    """A time at which an order still counts: in the newest hour that has orders, or the first."""
    watermark = hometown.status()["watermark"]
    hours = hometown.list_hours(**({"from": watermark} if watermark else {}))["hours"]
    newest = [datetime.fromisoformat(each["hour"]) for each in hours[-1:]]
    return max([HOUR + AFTER_THE_SAMPLE, *newest])


if __name__ == "__main__":
    main()
