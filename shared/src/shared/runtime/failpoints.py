"""Places where a test kills the process: between each two steps that a crash could separate.

Nothing outside tests arms one. `docs/architecture.md` has the steps in their order.
"""

import os
import signal
from enum import StrEnum


class Failpoint(StrEnum):
    """Those of shared, named after what has just been done; a service can have its own."""

    # The relay, from commit to checkpoint.
    ROWS_READ = "rows-read"
    RECORDS_HANDED_OVER = "records-handed-over"
    RECORDS_ACKNOWLEDGED = "records-acknowledged"
    PROGRESS_MADE = "progress-made"
    CHECKPOINT_STORED = "checkpoint-stored"
    PAGE_ACKNOWLEDGED = "page-acknowledged"
    LEASE_RELEASED = "lease-released"
    # The consumer, from record to acknowledgement.
    RECORDS_TAKEN_IN_HAND = "records-taken-in-hand"
    EFFECTS_WRITTEN = "effects-written"
    EFFECTS_COMMITTED = "effects-committed"
    RECORDS_MARKED_DONE = "records-marked-done"
    DEAD_LETTER_WRITTEN = "dead-letter-written"
    STREAM_PARKED = "stream-parked"


_armed: StrEnum | None = None


def arm(point: StrEnum) -> None:
    """Let this process die at `point`, as by `kill -9`."""
    global _armed
    _armed = point


def hit(point: StrEnum) -> None:
    """Report that a step is done."""
    if point is _armed:
        os.kill(os.getpid(), signal.SIGKILL)
