"""The failpoints of the job (see `shared.runtime.failpoints`)."""

from enum import StrEnum


class JobFailpoint(StrEnum):
    """Around the commit of a batch, named after what has just been done."""

    BATCH_RECEIVED = "batch-received"
    CELLS_WRITTEN = "cells-written"
    CELLS_COMMITTED = "cells-committed"
