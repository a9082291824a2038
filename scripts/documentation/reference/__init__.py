"""The reference: pages that are generated from what the code itself reads, so none is stale.

Each module writes one kind of page; `tables.py` has what they share.
"""

from collections.abc import Mapping
from functools import cache

from scripts.documentation.reference import (
    events,
    http,
    metrics,
    processes,
    settings,
    topics,
    verbs,
)


@cache
def generate() -> Mapping[str, str]:
    """The text of each page by its path."""
    return {
        "reference/processes.md": processes.write(),
        "reference/settings.md": settings.write(),
        "reference/topics.md": topics.write(),
        "reference/events.md": events.write(),
        **{f"reference/{name}.md": text for name, text in http.write().items()},
        "reference/metrics.md": metrics.write(),
        "reference/verbs.md": verbs.write(),
    }
