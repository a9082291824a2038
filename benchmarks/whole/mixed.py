"""The mixed load with repricing, by `make load`: its rate and its answers."""

import json
from collections.abc import Mapping

from benchmarks import servers
from local_stack.stack_spec import StackContext

RATE = 100
"""Actions a second."""
KEPT_SHARE_MIN = 0.95
"""Of the rate: it is divided by the time of the last answer."""
SECONDS_MORE_MAX = 660
"""It waits until everything is counted."""


async def run(context: StackContext, seconds: int) -> Mapping[str, float]:
    """The figures of `make load`, by name. Raises Failure when totals differ, or it fails."""
    arguments = [
        *("-m", "verification.load", "--late", "0"),
        *("--rate", str(RATE), "--seconds", str(seconds)),
    ]
    environment = {"HOMETOWN_RUN_DIR": str(context.folder.path)}
    async with servers.python(context, arguments, environment) as load:
        await load.wait_until_finished(seconds + SECONDS_MORE_MAX)
    found = json.loads((context.folder / "bench" / "load.json").read_text())
    return {each["name"]: each["value"] for each in found}
