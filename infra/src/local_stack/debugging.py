"""`debug`: a process in this terminal, in place of the one that the stack keeps running.

`breakpoint()` stops it here. A debugger that starts this verb follows the process, too.
"""

import subprocess
from contextlib import suppress

from fetching.errors import Failure
from local_stack import supervision
from local_stack.progress import Tone, tell
from local_stack.settings import Settings
from local_stack.stack_spec import Process, StackContext, StackSpec, Tier
from local_stack.tools import find_running, stopped

INTERRUPTS_MAX = 2
"""The first one ends the process as usual; after the last one it is killed."""


def debug(spec: StackSpec, settings: Settings, name: str) -> int:
    """Run a process here until it ends, and let the stack run it again; its exit status.

    Raises:
        Failure: the stack does not run it, or it is a server such as Kafka.
    """
    process, context = find_running(spec, settings, name)
    if process.tier is not Tier.SERVICE:
        services = ", ".join(each.name for each in spec.of(Tier.SERVICE))
        raise Failure(f"{name} has no code of ours to debug; name one of {services}")
    with context.folder.locked(), stopped(context, process):
        tell(f"{name:<16} runs here; Ctrl-C gives it back to the stack", Tone.POOR)
        return run_here(context, process)


def run_here(context: StackContext, process: Process) -> int:
    """Run a process in the foreground, with the terminal of this one."""
    environment = {**supervision.environment(context.folder), **process.environment(context)}
    with subprocess.Popen(
        process.command(context), env=environment, cwd=context.folder.path
    ) as running:
        try:
            for _ in range(INTERRUPTS_MAX):
                with suppress(KeyboardInterrupt):  # the terminal sends it to both
                    return running.wait()
        finally:
            running.kill()  # does nothing to a process that has ended
        return running.wait()
