"""The files of the skeleton: those of a new service, and what can be grafted onto one."""

import re
from pathlib import Path

from scripts.parts.removal import cut_file

SKELETON = Path(__file__).parent / "skeleton"

COMMAND, EVENT, READ_MODEL = "approve", "approved", "digest"
"""The words of what can be added to an aggregate; the skeleton has one of each."""

OF_COMMAND = re.compile("approv", re.IGNORECASE)
"""What mentions the command or its event, which OF_EVENT matches alone."""
OF_EVENT = re.compile(EVENT, re.IGNORECASE)
OF_READ_MODEL = re.compile(READ_MODEL, re.IGNORECASE)


def read_skeleton() -> dict[str, str]:
    """Return the texts of the skeleton by their paths."""
    return {
        str(path.relative_to(SKELETON)): path.read_text()
        for path in sorted(SKELETON.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def read_service() -> dict[str, str]:
    """Return the texts of a new service, which are the skeleton without what can be added."""
    texts = read_skeleton()
    for pattern in (OF_COMMAND, OF_READ_MODEL):
        texts = {
            path: cut_file(path, text, (), pattern)
            for path, text in texts.items()
            if not pattern.search(path)
        }
    return texts
