"""Place an order, wait until it is counted, and print its trace; or print another trace by its id.

make trace
docker compose run --rm trace
make trace id=0af7651916cd43dd8448eb211c80319c
"""

import argparse
import re
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from local_stack.settings import Settings
from scripts.demo import wait_until_read
from scripts.guide import exit_with_reason, find_commands, print_order_address, print_trace, say
from test_support.system.clients import Hometown
from test_support.system.eventually import NotInTime, eventually
from test_support.system.sample import HOUR, SINCE
from test_support.system.steady_orders import open_account
from test_support.system.traces import Span, is_counted, spans_of

JAEGER_SECONDS_MAX = 60
READ_SECONDS_MAX = 5
COUNTED_SECONDS_MAX = 180
"""A batch of the job takes a second, and twenty on a busy machine."""
KNOWN_SECONDS_MAX = 5
"""A trace of which Jaeger has nothing by then has another id, or is not recorded."""
POLL_SECONDS = 0.1
SETTLED_SECONDS = 2
"""Without a new span, until a trace is taken as whole: a process exports twice in a second."""
AFTER_THE_SAMPLE = timedelta(hours=1)
"""Less than the lateness that analytics allows: the sample can be loaded later."""

TRACE_ID = re.compile("[0-9a-f]{32}")


class NoTrace(Exception):
    """A trace is not there, or not all of it; the message has the reason."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--id", help="of a trace, as log lines have it")
    trace_id = parser.parse_args().id
    with exit_with_reason("there is no trace", NoTrace):
        hometown = Hometown.of_run_folder(Settings().run_dir)
        if trace_id is None:
            show_new(hometown)
        else:
            show(hometown, trace_id)


def show_new(hometown: Hometown) -> None:
    """Place an order and print its trace, whatever Jaeger has of what was before.

    Raises:
        NoTrace: Jaeger does not respond, or the trace has no end in time. What there is of it has
            been printed.
    """
    user_id, item_id = open_account(hometown, SINCE, key="trace")
    wait_for_jaeger(hometown)
    ordered_at = choose_time(hometown)
    with hometown.in_one_trace() as trace_id:
        placed = hometown.place_order(user_id, [(item_id, 1)], ordered_at)
    order = hometown.wait_for_decision(placed["order_id"])
    say(f"order {order['order_id']}: {order['status']}, ordered at {order['ordered_at']}")
    print_order_address(hometown, order["order_id"])
    is_whole = is_counted if order["status"] == "confirmed" else bool
    spans = read_settled(hometown, trace_id, is_whole, COUNTED_SECONDS_MAX)
    print_trace(hometown, trace_id, spans)
    if not is_counted(spans):
        look = find_commands().lag
        raise NoTrace(f"the order is {order['status']}, and not counted (see: {look})")


def show(hometown: Hometown, trace_id: str) -> None:
    """Print a trace with attributes of its spans. Raises NoTrace."""
    if not TRACE_ID.fullmatch(trace_id):
        raise NoTrace(f"{trace_id!r} is not a trace id: 32 of 0-9a-f, as log lines have it")
    if not hometown.jaeger_answers():
        raise NoTrace(f"Jaeger does not respond (see: {find_commands().status})")
    spans = read_settled(hometown, trace_id, bool, KNOWN_SECONDS_MAX)
    print_trace(hometown, trace_id, spans, with_attributes=True)


def choose_time(hometown: Hometown) -> datetime:
    """Choose a time at which an order counts, and makes no other one late: the newest hour."""
    wait_until_read(hometown, READ_SECONDS_MAX)
    times = [HOUR + AFTER_THE_SAMPLE]
    query: dict[str, object] = {}
    watermark = hometown.status()["watermark"]
    if watermark is not None:  # there is none after a first batch
        times.append(datetime.fromisoformat(watermark) + timedelta(seconds=1))
        query = {"from": watermark}
    hours = hometown.list_hours(**query)["hours"]
    return max([*times, *(datetime.fromisoformat(each["hour"]) for each in hours)])


def wait_for_jaeger(hometown: Hometown) -> None:
    """Wait until Jaeger responds, which can be still starting. Raises NoTrace."""
    if hometown.jaeger_answers():
        return
    say("waiting for Jaeger")
    try:
        eventually(
            hometown.jaeger_answers, bool, what="Jaeger responds", seconds_max=JAEGER_SECONDS_MAX
        )
    except NotInTime as error:
        look = find_commands().status
        reason = f"Jaeger does not respond within {JAEGER_SECONDS_MAX} s (see: {look})"
        raise NoTrace(reason) from error


def read_settled(
    hometown: Hometown, trace_id: str, is_whole: Callable[[list[Span]], bool], seconds_max: float
) -> list[Span]:
    """Read a trace once it is whole and has had no new span for a while, or after `seconds_max`.

    Raises:
        NoTrace: Jaeger has nothing of it.
    """
    began_at = changed_at = now = time.monotonic()
    spans: list[Span] = []
    while now - began_at < seconds_max:
        if is_whole(spans) and now - changed_at >= SETTLED_SECONDS:
            break
        time.sleep(POLL_SECONDS)
        trace = hometown.trace(trace_id)
        found = spans_of(trace) if trace else []
        now = time.monotonic()
        if len(found) != len(spans):
            spans, changed_at = found, now
    if not spans:
        raise NoTrace(
            f"Jaeger has no trace {trace_id}: it is not recorded (TRACES_PER_SECOND_MAX,"
            " OTEL_TRACES_SAMPLER), or Jaeger has restarted since"
        )
    return spans


if __name__ == "__main__":
    main()
