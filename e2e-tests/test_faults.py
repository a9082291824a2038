"""What is killed or stopped on purpose is back: `make kill`, `make stop`."""

import pytest

from test_support.system.clients import Hometown
from test_support.system.sample import Sample
from test_support.system.stack import Stack


@pytest.mark.parametrize(
    ("name", "fault", "outcome"),
    [
        ("orders-worker", ("kill",), "ready after"),
        ("orders-relay", ("stop", "seconds=1"), "starts again in 1 s"),
    ],
)
def test_a_process_is_back_and_an_order_is_decided(
    stack: Stack,
    hometown: Hometown,
    sample: Sample,
    name: str,
    fault: tuple[str, ...],
    outcome: str,
) -> None:
    before = stack.lives()[name]

    printed = stack.make_output(*fault, f"name={name}")

    assert f"{name:<16} {outcome}" in printed
    assert stack.lives()[name] != before, "it is another process"
    lines = [(sample.items["iphone"], 1)]
    order = hometown.place_order(sample.users["Jack"], lines, sample.at(31))
    assert hometown.wait_for_decision(order["order_id"])["status"] == "confirmed"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("kill", "name=no-such-process"), "hometown: "),
        (("stop", "name=no-such-process"), "hometown: "),
        (("stop", "name=orders-relay", "seconds=0"), "seconds=0: more than 0"),
        (("stop",), "name=PROCESS is missing"),
    ],
)
def test_a_fault_that_cannot_be_is_refused_and_changes_nothing(
    stack: Stack, words: tuple[str, ...], complaint: str
) -> None:
    before = stack.lives()

    ended = stack.make(*words)

    assert ended.returncode != 0
    assert complaint in ended.stderr
    assert stack.lives() == before
