"""The files of the skeleton: those of a new service, and what can be grafted onto one."""

import re
from pathlib import Path

from scripts.parts.removal import cut_file

SKELETON = Path(__file__).parent / "skeleton"

COMMAND, EVENT, READ_MODEL = "approve", "approved", "digest"
REACTION, OUTCOME = "settle", "settled"
"""The words of what can be added to an aggregate; the skeleton has one of each. What a reaction
leads to is a command and its event, too."""

OF_COMMAND = re.compile("approv", re.IGNORECASE)
"""What mentions the command or its event, which OF_EVENT matches alone."""
OF_EVENT = re.compile(EVENT, re.IGNORECASE)
OF_READ_MODEL = re.compile(READ_MODEL, re.IGNORECASE)
OF_REACTION = re.compile("settle|cancelled", re.IGNORECASE)
"""What mentions the command, the event or the message of the reaction."""
OF_FIRST_REACTION = re.compile(f"{OF_REACTION.pattern}|thing_commands", re.IGNORECASE)
"""The same with the table of the aggregate's commands, where the service has none yet."""
OF_OTHER_REACTION = re.compile("confirmed", re.IGNORECASE)
"""What mentions the reaction that each new service has. It is in no table that is new."""


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
    for pattern in (OF_COMMAND, OF_READ_MODEL, OF_REACTION):
        texts = {
            path: cut_file(path, text, (), pattern)
            for path, text in texts.items()
            if not pattern.search(path)
        }
    return texts
