"""The settings and scripts of PostgreSQL, Kafka and Jaeger, which run in images of others.

A mount of the checkout would show them with the modes that they have there: after a clone with
another umask, the user of a container could not read them.
"""

from pathlib import Path

from local_stack.run_folder import write_atomically

SOURCE = Path("/app/config")
"""In the image."""
CONFIG = "config"
"""The folder of the volume."""
READABLE = 0o644
"""Kafka copies its settings with their modes, and then writes to the copies."""


def copy(root: Path, source: Path = SOURCE) -> None:
    """Write the files of each server to a folder of its own."""
    for file in source.glob("*/*"):
        folder = root / CONFIG / file.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / file.name, file.read_text(), mode=READABLE)
