"""What a checkpoint on disk tells about its query: who it is, and what a batch reads."""

import json
from pathlib import Path
from typing import Literal

Offsets = dict[str, dict[str, int]]
"""End offsets (not included) by topic and partition."""

Ranges = dict[str, dict[str, list[int]]]
"""[first, end] by topic and partition, end not included."""


def query_id(checkpoint: Path) -> str | None:
    """The id of the query that owns the checkpoint; None before it ever ran."""
    metadata = checkpoint / "metadata"
    if not metadata.exists():
        return None
    identity: str = json.loads(metadata.read_text())["id"]
    return identity


def newest_batch(checkpoint: Path, log: Literal["offsets", "commits"]) -> int:
    """The newest batch that Spark planned (offsets) or has done (commits); -1 for none."""
    names = (entry.name for entry in (checkpoint / log).glob("*"))
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def partitions(checkpoint: Path, batch_id: int) -> int | None:
    """Into how many partitions the state is split for a batch; None when the batch is not there.

    Spark runs a batch with the settings that it was planned with, whatever they are now.
    """
    log = checkpoint / "offsets" / str(batch_id)
    lines = log.read_text().splitlines() if log.exists() else []
    if len(lines) < 2:
        return None
    planned: dict[str, dict[str, str]] = json.loads(lines[1])
    number = planned["conf"].get("spark.sql.shuffle.partitions")
    return int(number) if number else None


def is_rescale(checkpoint: Path, batch_id: int) -> bool:
    """Whether a batch only split the state otherwise: it read nothing, and the sink has not seen
    it."""
    before, after = (partitions(checkpoint, each) for each in (batch_id - 1, batch_id))
    return None not in (before, after) and before != after


def newest_sunk(checkpoint: Path) -> int:
    """The newest batch that is done and went through the sink; -1 for none."""
    batch_id = newest_batch(checkpoint, "commits")
    while is_rescale(checkpoint, batch_id):
        batch_id -= 1
    return batch_id


def end_offsets(checkpoint: Path, batch_id: int) -> Offsets:
    """Where a batch ends; nothing for a batch that is not (or no longer) there.

    Spark writes the file before it runs the batch: a version, a line about the batch, and a line
    for each source, which is JSON, or "-" when the source had nothing ever.
    """
    log = checkpoint / "offsets" / str(batch_id)
    if not log.exists():
        return {}
    merged: Offsets = {}
    for line in log.read_text().splitlines()[2:]:
        if line != "-":
            merged |= json.loads(line)
    return merged


def read_by(checkpoint: Path, batch_id: int) -> Ranges:
    """What a batch reads."""
    before, after = end_offsets(checkpoint, batch_id - 1), end_offsets(checkpoint, batch_id)
    return {
        topic: {
            partition: [before.get(topic, {}).get(partition, 0), end]
            for partition, end in partitions.items()
        }
        for topic, partitions in after.items()
    }
