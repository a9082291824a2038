"""After an act its spans, series and lines are there, as the case files have them; no error is."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import httpx
import pytest

from containers.metric_registry import Metric
from test_support.exposed_metrics import REGISTRY
from test_support.raw_records import encode, event_headers, raw, write_each
from test_support.system.clients import Hometown, rfc3339
from test_support.system.eventually import eventually
from test_support.system.sample import HOUR, load
from test_support.system.stack import Stack
from test_support.system.steady_orders import open_account
from test_support.system.telemetry import (
    SIGNALS,
    Case,
    Pattern,
    Record,
    Signal,
    Telemetry,
    fits_any,
    load_cases,
    read_paths,
)
from test_support.system.traces import Step

REPORTS = 3
"""Of the observer, in a row: the first one can have begun before it was waited for, and what is
recorded while the second one is made is in the third."""


@dataclass(frozen=True, slots=True)
class Shop:
    """What there is before all acts: with a confirmed order, and another user without credit."""

    hometown: Hometown
    hour: datetime
    user_id: str
    poor_user_id: str
    item_id: str
    order_id: str


Ids = Mapping[str, str]
"""By the names that patterns have for them, such as {order_id}."""


def confirm_an_order(shop: Shop) -> Ids:
    return {"order_id": place(shop, shop.user_id, "confirmed"), "user_id": shop.user_id}


def reject_an_order(shop: Shop) -> Ids:
    return {"order_id": place(shop, shop.poor_user_id, "rejected"), "user_id": shop.poor_user_id}


def place(shop: Shop, user_id: str, status: str) -> str:
    order = shop.hometown.place_order(user_id, [(shop.item_id, 1)], shop.hour)
    assert shop.hometown.wait_for_decision(order["order_id"])["status"] == status
    return str(order["order_id"])


def cancel_an_order(shop: Shop) -> Ids:
    shop.hometown.cancel_order(shop.order_id)
    return {"order_id": shop.order_id, "user_id": shop.user_id}


def move_a_user(shop: Shop) -> Ids:
    shop.hometown.move_user(shop.user_id, address="SH", effective_at=rfc3339(shop.hour))
    return {"user_id": shop.user_id}


def refuse_a_request(shop: Shop) -> Ids:
    with pytest.raises(httpx.HTTPStatusError):
        shop.hometown.place_order(shop.user_id, [(shop.item_id, 0)], shop.hour)
    return {}


def write_what_cannot_be_read(shop: Shop) -> Ids:
    stream_id = str(uuid4())
    headers = encode(event_headers("order-placed", stream_id))
    records = [raw("orders.v1", 0, *headers, value=b"garbage"), raw("orders.v1", 0)]
    asyncio.run(write_each(shop.hometown.addresses["kafka"], records))
    return {"stream_id": stream_id}


def load_the_sample(shop: Shop) -> Ids:
    load(shop.hometown, shop.hour)
    return {}


CONFIRMED = "an order is confirmed"
ACTS: Mapping[str, Callable[[Shop], Ids]] = {
    CONFIRMED: confirm_an_order,
    "an order is rejected": reject_an_order,
    "an order is cancelled": cancel_an_order,
    "a user moves": move_a_user,
    "a request is refused": refuse_a_request,
    "records cannot be read": write_what_cannot_be_read,
    "the sample is loaded": load_the_sample,
}
FIRST_DEMO = "the system starts and the demonstration runs"


@pytest.fixture(scope="module")
def shop(stack: Stack, hours_later: Iterator[timedelta]) -> Iterator[Shop]:
    hometown, hour = stack.hometown, HOUR + next(hours_later)
    user_id, item_id = open_account(hometown, hour)
    poor = hometown.register_user(name="Jim", address="BJ", gender="male", credit_limit="0.50")
    order_id = hometown.place_order(user_id, [(item_id, 1)], hour)["order_id"]
    assert hometown.wait_for_decision(order_id)["status"] == "confirmed"
    wait_until_all_is_consumed(stack)
    yield Shop(hometown, hour, user_id, poor["user_id"], item_id, order_id)
    hometown.http.close()


def wait_until_all_is_consumed(stack: Stack) -> None:
    """Wait until nothing is under way, all processes run, and no hour differs from its events."""
    began_at = datetime.now(UTC)
    reports: dict[str, bool] = {}

    def read_reports() -> Sequence[bool]:
        """Read one more; whether nothing was under way in each of the last ones."""
        report = json.loads(stack.make("lag", "args=--json").stdout or "{}")
        if report and datetime.fromisoformat(report["measured_at"]) > began_at:
            is_measured = report["consumers"] and not any(report["servers"].values())
            waiting = [
                *(each["lag"] for each in report["consumers"]),
                *(each["backlog"]["rows"] for each in report["relays"]),
            ]
            reports[report["measured_at"]] = bool(is_measured) and not any(waiting)
        return [*reports.values()][-REPORTS:]

    def is_right() -> Sequence[object]:
        differences = stack.read_series("analytics-reconciler", "hometown_reconcile_differences")
        return [stack.make("status").returncode, *differences]

    eventually(read_reports, lambda seen: seen == [True] * REPORTS, what="all that is consumed")
    eventually(is_right, lambda seen: not any(seen), what="that all processes run, and all hours")


@pytest.mark.usefixtures("jaeger")
@pytest.mark.parametrize(
    "act", [pytest.param(act, marks=pytest.mark.smoke if act == CONFIRMED else ()) for act in ACTS]
)
def test_an_act_is_in_all_signals_and_no_other_error_is(stack: Stack, shop: Shop, act: str) -> None:
    telemetry = Telemetry(stack, shop.hometown)

    with shop.hometown.in_one_trace() as trace_id:
        ids = {**ACTS[act](shop), "trace_id": trace_id}

    cases = {signal: load_cases(signal)[act].fill(ids) for signal in SIGNALS}

    def find_missing() -> Mapping[Signal, Sequence[Pattern]]:
        found = {name: case.find_missing(telemetry.read(name)) for name, case in cases.items()}
        return {name: missing for name, missing in found.items() if missing}

    eventually(find_missing, lambda missing: not missing, what=f"the telemetry after: {act}")
    wait_until_all_is_consumed(stack)
    for signal, case in cases.items():
        assert not case.find_unwanted(telemetry.read(signal)), signal


@pytest.mark.smoke
def test_a_quiet_start_and_the_demonstration_show_no_error(
    first_telemetry: Mapping[Signal, Sequence[Record]],
) -> None:
    for signal, records in first_telemetry.items():
        case = load_cases(signal)[FIRST_DEMO].fill({"trace_id": "[0-9a-f]+"})
        assert not case.find_missing(records), signal
        assert not case.find_unwanted(records), signal


@pytest.mark.parametrize("signal", SIGNALS)
def test_each_act_has_a_case_in_each_file(signal: Signal) -> None:
    assert {*load_cases(signal)} == {*ACTS, FIRST_DEMO}


def test_patterns_of_series_have_names_of_the_registry() -> None:
    """A pattern with another name would fit nothing, and what is absent would never be seen."""
    for case in load_cases("series").values():
        for pattern in [*case.present, *case.errors, *case.absent, *case.allowed]:
            metric = find_metric(pattern["series"])
            labels = {name for name in pattern if name not in ("process", "series")}
            assert labels <= {each.replace(".", "_") for each in metric.attributes}, pattern


def find_metric(series: str) -> Metric:
    return REGISTRY.get(series) or REGISTRY[series.removesuffix("_count")]


@pytest.mark.parametrize(
    "line",
    [
        {"process": "users-api", "level": "critical"},
        {"process": "postgres", "text": '2026-11-28 06:10:21.625 UTC [7] ERROR:  no table "x"'},
        {"process": "kafka", "text": "2026-11-28T06:10:22.627Z ERROR  Log4jController$ failed"},
        {"process": "analytics-job", "text": "Traceback (most recent call last):"},
        {"process": "jaeger", "text": "2026-11-28T06:10:22.159Z\terror\tui/assets.go:27\tfailed"},
        {"process": "supervisord", "text": "WARN exited: users-api (exit status 1; not expected)"},
    ],
)
def test_an_error_of_each_program_would_be_seen(line: Record) -> None:
    assert all(fits_any(line, case.absent) for case in load_cases("lines").values())


CASE = Case(
    present=[{"message": "recorded", "stream_id": "{order_id}", "seconds": ".*"}],
    errors=[{"message": "as .*expected"}],
    absent=[{"level": "error|critical"}],
    allowed=[{"message": "once more"}],
)
RECORDED = {"message": "recorded", "stream_id": "7", "seconds": "1"}
EXPECTED = {"level": "error", "message": "as it was\nexpected"}


@pytest.mark.parametrize(
    "line",
    [
        RECORDED | {"stream_id": "8"},
        RECORDED | {"stream_id": "77"},
        RECORDED | {"message": "recorded again"},
        {"message": "recorded", "stream_id": "7"},
    ],
)
def test_what_does_not_fit_is_missing(line: Record) -> None:
    case = CASE.fill({"order_id": "7"})

    assert case.find_missing([line, EXPECTED]) == case.present
    assert not case.find_missing([line, EXPECTED, RECORDED])


def test_an_error_of_the_act_is_missing_if_it_is_none() -> None:
    """So it is shown that errors are seen."""
    case = CASE.fill({"order_id": "7"})

    assert case.find_missing([RECORDED]) == case.errors
    assert case.find_missing([RECORDED, EXPECTED | {"level": "info"}]) == case.errors


def test_what_is_absent_and_not_allowed_is_unwanted() -> None:
    bad = [{"level": "critical"}, {"level": "error", "message": "as expected\nor not"}]
    good = [{"level": "info"}, EXPECTED, {"level": "error", "message": "once more"}]

    assert CASE.find_unwanted([*good, *bad]) == bad


def test_an_id_that_an_act_does_not_have_is_refused() -> None:
    with pytest.raises(KeyError, match="order_id"):
        CASE.fill({"user_id": "7"})


def test_the_braces_of_a_route_are_no_id() -> None:
    case = Case(present=[{"path": re.escape("orders-api: POST /v1/orders/{order_id}/cancel")}])

    assert case.fill({}).present == case.present


def test_a_trace_is_read_from_its_indented_lines() -> None:
    text = """
a: one
  b: two
    c: three
  b: four
d: five
"""

    one, two, three = Step("a", "one"), Step("b", "two"), Step("c", "three")
    four, five = Step("b", "four"), Step("d", "five")
    assert list(read_paths(text)) == [(one,), (one, two), (one, two, three), (one, four), (five,)]
