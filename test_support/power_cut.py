"""A broker after a power cut: the newest records of its topics were not on the disk yet."""

import asyncio

from local_stack import supervision
from local_stack.kafka import KAFKA, home
from local_stack.readiness import wait_until_ready
from local_stack.stack_spec import Process, StackContext
from test_support.cut_logs import cut_off
from test_support.system.eventually import eventually


def cut_power(context: StackContext, topic: str, batches: int) -> None:
    """Restart the broker after `cut_off`."""
    stop(context, KAFKA)
    cut_off(home(context) / "data", topic, batches)
    start(context, KAFKA)


def stop(context: StackContext, process: Process) -> None:
    """Returns when it has ended."""
    supervision.stop(context.folder, process.name)
    eventually(
        lambda: (supervision.programs(context.folder) or {})[process.name].is_at_rest,
        bool,
        what=f"{process.name} has ended",
    )


def start(context: StackContext, process: Process) -> None:
    """Returns when it is ready."""
    supervision.start(context.folder, process.name)
    asyncio.run(wait_until_ready(context, process, process.ready_seconds_max))
