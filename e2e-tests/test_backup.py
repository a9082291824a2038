"""A backup of a running stack becomes another stack with the same answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local_stack.republishing import REPUBLISH
from local_stack.run_folder import RunFolder
from local_stack.testing import new_folder
from test_support.system.clients import Hometown
from test_support.system.eventually import eventually
from test_support.system.process_stack import ProcessStack
from test_support.system.sample import Sample
from test_support.system.stack import Stack

pytestmark = pytest.mark.verify(part="end-to-end")


@pytest.fixture
def another(stack: Stack) -> Iterator[Stack]:
    """A stack that is not started yet, next to the one of all tests."""
    if stack.way != ProcessStack.way:
        pytest.skip("backup and restore are for processes")
    another = ProcessStack(RunFolder(new_folder()))
    try:
        yield another
    finally:
        another.make_output("clean")


def test_a_backup_becomes_a_stack_with_the_same_hours(
    stack: Stack, hometown: Hometown, sample: Sample, another: Stack, tmp_path: Path
) -> None:
    folder = tmp_path / "backup"
    before = eventually(
        lambda: hometown.hour(sample.hour), lambda seen: seen["purchases"] == 4, what="the sample"
    )
    stack.make_output("backup", f"to={folder}")
    buy(hometown, sample)

    another.make_output("restore", f"from={folder}")
    restored = another.hometown
    assert restored.hour(sample.hour) == before, "what came after the backup is not there"
    another.make_output("audit")
    another.make_output("rebuild-check")

    buy(restored, sample)
    eventually(
        lambda: restored.hour(sample.hour),
        lambda seen: seen["purchases"] == 5,
        what="an order of after the restore",
    )
    after = restored.hour(sample.hour)
    restored.http.close()
    republish_after_an_interruption(another)
    republished = another.hometown
    assert republished.hour(sample.hour) == after
    republished.http.close()


def republish_after_an_interruption(stack: Stack) -> None:
    """The machine was restarted in the middle."""
    stack.folder.begin(REPUBLISH)
    stack.make_output("down")
    refused = stack.make("up")
    assert refused.returncode != 0
    assert REPUBLISH in refused.stderr

    stack.make_output("republish")


def buy(hometown: Hometown, sample: Sample) -> None:
    """Jack buys one iphone more, which is local."""
    order = hometown.place_order(sample.users["Jack"], [(sample.items["iphone"], 1)], sample.at(50))
    assert hometown.wait_for_decision(order["order_id"])["status"] == "confirmed"
