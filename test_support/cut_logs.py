"""The disk of a broker after a power cut: the newest records of a topic had not reached it.

python cut_logs.py FOLDER TOPIC BATCHES, also in a container, where nothing else of this package is.
"""

import struct
import sys
from pathlib import Path

LENGTH_FROM, LENGTH_BYTES = 8, 12
"""A record batch begins with its offset and the length of what follows."""

NOT_IN_TIME = ("*.index", "*.timeindex", "*.snapshot", "leader-epoch-checkpoint")
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    ".kafka_cleanshutdown",
)


def cut_off(data: Path, topic: str, batches: int) -> None:
    """Remove the last batches of each partition of a topic from the disk of a broker that does not
    run; the first of those is torn."""
    for partition in data.glob(f"{topic}-[0-9]*"):
        cut_log(partition, batches)
    for name in CHECKPOINTS:
        (data / name).unlink(missing_ok=True)


def cut_log(partition: Path, batches: int) -> None:
    """Tear the log of a partition within one of its last batches, and remove what is derived."""
    [log] = partition.glob("*.log")
    content = log.read_bytes()
    begins: list[int] = []
    at = 0
    while at + LENGTH_BYTES <= len(content):
        (length,) = struct.unpack_from(">i", content, at + LENGTH_FROM)
        if length <= 0:
            break  # room that was reserved for more
        begins.append(at)
        at += LENGTH_BYTES + length
    if begins:
        with log.open("r+b") as file:
            file.truncate(begins[-batches:][0] + LENGTH_BYTES)
    for pattern in NOT_IN_TIME:
        for derived in partition.glob(pattern):
            derived.unlink()


if __name__ == "__main__":
    cut_off(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
