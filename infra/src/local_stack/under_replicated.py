"""Which broker all under-replicated partitions miss, from what Kafka's `topics` prints."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

DESCRIBE = ("--describe", "--under-replicated-partitions")
LINE = re.compile(
    r"Topic: (?P<topic>\S+)\s+Partition: (?P<number>\d+)\s.*?"
    r"Replicas: (?P<replicas>[\d,]+)\s+Isr: (?P<in_sync>[\d,]*)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """The brokers that have a partition, and those of them that have all of its records."""

    topic: str
    number: int
    brokers: frozenset[int]
    in_sync: frozenset[int]

    @property
    def missing(self) -> frozenset[int]:
        return self.brokers - self.in_sync


def parse(printed: str) -> Iterator[Replicas]:
    """Of each line about a partition."""
    for line in LINE.finditer(printed):
        yield Replicas(
            topic=line["topic"],
            number=int(line["number"]),
            brokers=parse_brokers(line["replicas"]),
            in_sync=parse_brokers(line["in_sync"]),
        )


def parse_brokers(text: str) -> frozenset[int]:
    return frozenset(int(number) for number in text.split(",") if number)


def find_missing_everywhere(partitions: Sequence[Replicas]) -> frozenset[int]:
    """The brokers that every one of these partitions misses."""
    if not partitions:
        return frozenset()
    return frozenset.intersection(*(each.missing for each in partitions))


def summarize(printed: str) -> str:
    """One line: how many partitions, and the broker to look at first."""
    partitions = [each for each in parse(printed) if each.missing]
    if not partitions:
        return "no partition is under-replicated"
    everywhere = find_missing_everywhere(partitions)
    missing = frozenset.union(*(each.missing for each in partitions))
    counted = f"{len(partitions)} partitions are under-replicated"
    if not everywhere:
        return (
            f"{counted}; no broker is missing in all of them, but {list_brokers(missing)} in some"
        )
    return f"{counted}; missing in all of them: {list_brokers(everywhere)}"


def list_brokers(numbers: frozenset[int]) -> str:
    return ", ".join(f"broker {number}" for number in sorted(numbers))
