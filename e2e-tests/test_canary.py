"""The canary measures the whole road, and disturbs no answer."""

from datetime import datetime, timedelta

from test_support.metric_registry import EXPOSED, parse
from test_support.system.clients import Hometown
from test_support.system.eventually import eventually
from test_support.system.sample import Sample
from test_support.system.stack import Stack

CANARY = "canary"
LATENESS = timedelta(hours=2)


def test_its_orders_are_confirmed_and_counted_and_make_none_late(
    stack: Stack, hometown: Hometown, hour: datetime, sample: Sample
) -> None:
    def find_outcomes() -> dict[str, float]:
        return {
            sample.labels["outcome"]: sample.value
            for name, _, sample in parse(stack.read_metrics(CANARY))
            if name == "hometown_canary_orders_total"
        }

    before = eventually(
        lambda: hometown.hour(hour), lambda found: found["purchases"] == 4, what="the sample"
    )
    late = hometown.status()["late_orders"]
    stack.make_output(CANARY)
    try:
        found = eventually(find_outcomes, lambda seen: sum(seen.values()) > 0, what="an order")
        exposed = {name for name, _, _ in parse(stack.read_metrics(CANARY))}
    finally:
        stack.stop([CANARY])

    assert {outcome: number for outcome, number in found.items() if number} == {"counted": 1}
    assert exposed <= EXPOSED.keys()
    after = hometown.hour(hour)
    assert {key: after[key] for key in ("local_buyers", "purchases", "quantity", "amount")} == {
        key: before[key] for key in ("local_buyers", "purchases", "quantity", "amount")
    }
    assert after["all"]["purchases"] == before["all"]["purchases"] + 1
    status = hometown.status()
    assert status["late_orders"] == late
    of_the_sample = sample.at(1) - LATENESS
    assert datetime.fromisoformat(status["watermark"]) < of_the_sample, "nothing else moved it"
