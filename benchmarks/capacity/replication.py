"""Which broker has which replica, who leads, and what several clusters need between them."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, zip_longest

Assignment = Sequence[Sequence[int]]
"""For each partition its brokers, the preferred leader first."""


def order_brokers(racks: Sequence[Sequence[int]]) -> list[int]:
    """The brokers of all racks in turn, so that neighbours are in different racks."""
    columns = zip_longest(*racks)
    return [broker for broker in chain.from_iterable(columns) if broker is not None]


def place_replicas(
    order: Sequence[int], partitions: int, replicas: int, first: int = 0
) -> Assignment:
    """Each partition is led one broker later than the one before it, from `first` in the order.

    Its followers are the next brokers, so that each full round of brokers is even. In what is left
    for less than a round they are those that have the fewest replicas, and the nearest of these.

    Raises:
        ValueError: there are fewer brokers than replicas.
    """
    if replicas > len(order):
        raise ValueError(f"{len(order)} brokers cannot have {replicas} replicas of a partition")
    turned = [order[(first + number) % len(order)] for number in range(len(order))]
    rest = partitions % len(order)
    even = [
        [turned[(leader + rank) % len(turned)] for rank in range(replicas)]
        for _ in range(partitions // len(order))
        for leader in range(len(turned))
    ]
    return [*even, *place_rest(turned, rest, replicas)]


def place_rest(order: Sequence[int], partitions: int, replicas: int) -> Assignment:
    """Fewer partitions than brokers; what each will lead counts from the beginning."""
    held = Counter(order[:partitions])
    placed = []
    for number in range(partitions):
        leader, *others = (*order[number:], *order[:number])
        followers = sorted(others, key=held.__getitem__)[: replicas - 1]
        held.update(followers)
        placed.append([leader, *followers])
    return placed


def count_replicas(placed: Assignment) -> Counter[int]:
    """Replicas by broker."""
    return Counter(chain.from_iterable(placed))


def count_leaders(placed: Assignment) -> Counter[int]:
    """Preferred leaders by broker."""
    return Counter(brokers[0] for brokers in placed)


def compute_leader_share(replicas: int) -> Fraction:
    """The share of its replicas that a broker leads when leaders are balanced."""
    return Fraction(1, replicas)


def count_mirrors(clusters: int, processes: int = 1) -> int:
    """Mirror processes when each cluster has the records of all others; `processes` of each kind,
    so that one can fail."""
    return clusters * (clusters - 1) * processes


def compute_quota(bytes_a_second: int, brokers: int) -> int:
    """What a client can send in a second: a quota is counted by each broker alone."""
    return bytes_a_second * brokers
