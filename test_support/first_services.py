"""What tests that list services word for word leave out: services that were added later."""

import re
from collections.abc import Iterable

from shared.runtime.declarations import load_declarations

FIRST = ("users", "orders", "analytics", "analytics-faust", "observer")
ADDED = {each.name for each in load_declarations().services} - {*FIRST}


def is_added(name: str) -> bool:
    """Whether a process, database, scope or variable belongs to an added service, by its name."""
    return re.split("[^a-z0-9]", name.lower())[0] in ADDED


def leave_out_added(names: Iterable[str]) -> set[str]:
    return {name for name in names if not is_added(name)}
