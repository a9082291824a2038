"""What was written and what was applied, compared across databases.

Each message carries the version of its stream, and a consumer keeps the last version that it has
consumed, of every stream in its topics. So the sums are equal at rest; while messages are on their
way they differ, and what stays different was parked or lost.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shared.messaging.topics import Topic

WRITTEN, APPLIED = "written", "applied"


@dataclass(frozen=True, slots=True)
class Count:
    """A sum of versions: `written` of a category of streams, or `applied` by a consumer."""

    stage: str
    name: str
    versions: int


def compare(counts: Iterable[Count], topics: Iterable[Topic]) -> Mapping[str, int]:
    """Written minus applied, by the consumer; only of those of which both sides are known."""
    found = {(each.stage, each.name): each.versions for each in counts}
    known, differences = list(topics), {}
    for stage, consumer in found:
        read = [topic for topic in known if consumer in topic.readers]
        keys = [(WRITTEN, topic.category) for topic in read if topic.category is not None]
        if stage == APPLIED and read and len(keys) == len(read):
            written = sum(found.get(key, 0) for key in keys)
            differences[consumer] = written - found[stage, consumer]
    return differences
