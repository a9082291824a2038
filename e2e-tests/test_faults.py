"""What people break on purpose heals by itself: `make kill`, `make stop`."""

import pytest

from test_support.system.clients import Hometown
from test_support.system.sample import Sample
from test_support.system.stack import Stack


@pytest.mark.parametrize(
    "fault", [("kill", "name=orders-worker"), ("stop", "name=orders-relay", "seconds=1")]
)
def test_a_process_is_back_and_an_order_is_decided(
    stack: Stack, hometown: Hometown, sample: Sample, fault: tuple[str, ...]
) -> None:
    name = fault[1].removeprefix("name=")
    before = stack.lives()[name]

    printed = stack.make_output(*fault)

    assert f"{name:<16} ready after" in printed
    assert stack.lives()[name] != before, "it is another process"
    lines = [(sample.items["iphone"], 1)]
    order = hometown.place_order(sample.users["Jack"], lines, sample.at(31))
    assert hometown.wait_for_decision(order["order_id"])["status"] == "confirmed"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("kill", "name=no-such-process"), "no-such-process"),
        (("stop", "name=orders-relay", "seconds=0"), "at most, not 0"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(
    stack: Stack, arguments: tuple[str, ...], complaint: str
) -> None:
    ended = stack.make(*arguments)

    assert ended.returncode != 0
    assert complaint in ended.stderr
