"""A power cut takes records of the broker's container: workers refuse, and one verb repairs it."""

import subprocess
from collections.abc import Iterator

import pytest

from local_stack.run_folder import RunFolder
from local_stack.testing import new_folder
from test_support.system.clients import Hometown
from test_support.system.container_stack import ContainerStack
from test_support.system.eventually import eventually
from test_support.system.sample import Sample, load
from test_support.system.stack import CHECKOUT
from test_support.waits import HANGS_AFTER_SECONDS

LOST_BATCHES = 2
"""Of each partition."""
SCRIPT = CHECKOUT / "test_support" / "cut_logs.py"
REFUSAL = "run `make republish`"


@pytest.fixture(scope="module")
def broken() -> Iterator[ContainerStack]:
    """A stack for this module alone: the others go on with their topics."""
    stack = ContainerStack(RunFolder(new_folder()))
    try:
        stack.make_output("up")
        yield stack
    finally:
        stack.make_output("clean")


def cut_power(stack: ContainerStack, topic: str) -> None:
    """The newest records of a topic were not on the broker's disk yet."""
    broker = stack.project.containers()["kafka"].id
    with stack.stopped("kafka"):
        subprocess.run(
            [
                *("docker", "run", "--rm", "--pull=never", "--user=0", "--network=none"),
                *(f"--volumes-from={broker}", f"--volume={SCRIPT}:/{SCRIPT.name}:ro"),
                *("--entrypoint=python", "hometown/infra", f"/{SCRIPT.name}"),
                *("/var/lib/kafka/data", topic, str(LOST_BATCHES)),
            ],
            check=True,
            timeout=HANGS_AFTER_SECONDS,
        )


def buy(hometown: Hometown, sample: Sample) -> None:
    """Jack buys one iphone more, which is local."""
    order = hometown.place_order(sample.users["Jack"], [(sample.items["iphone"], 1)], sample.at(50))
    assert hometown.wait_for_decision(order["order_id"])["status"] == "confirmed"


def wait_for_purchases(hometown: Hometown, sample: Sample, purchases: int) -> dict[str, object]:
    return eventually(
        lambda: hometown.hour(sample.hour),
        lambda seen: seen["purchases"] == purchases,
        what=f"{purchases} purchases",
    )


def test_republish_repairs_what_a_power_cut_took_from_the_topics(broken: ContainerStack) -> None:
    hometown = broken.hometown
    sample = load(hometown)
    before = wait_for_purchases(hometown, sample, 4)

    cut_power(broken, "orders.v1")
    eventually(
        lambda: broken.project.output("logs", "--no-log-prefix", "orders-worker"),
        lambda log: REFUSAL in log,
        what="a worker that refuses to continue",
    )
    broken.make_output("republish")

    assert hometown.hour(sample.hour) == before
    assert "all balance" in broken.make_output("audit")
    assert "all are right" in broken.make_output("check-cells")
    buy(hometown, sample)
    wait_for_purchases(hometown, sample, 5)
    hometown.http.close()


def test_without_a_broker_nothing_is_republished(broken: ContainerStack) -> None:
    with broken.stopped("kafka"):
        ended = broken.make("republish")

    assert ended.returncode != 0
    assert "kafka does not run here" in ended.stderr
    assert "users-relay" in broken.lives(), "nothing was stopped"
