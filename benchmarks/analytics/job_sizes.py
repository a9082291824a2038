"""Sizes of the measurement: full, quick, or just enough to test the benchmark itself."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Orders to count, and how many in each batch."""

    per_batch: int
    orders: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many orders there are, and how they are cut."""

    rounds: int
    users: int
    """Fewer than the records of a batch, which reads as many of each topic: a user that becomes
    known after an order is final is missing in its cell."""
    items: int
    orders: int
    hours: int
    """Of event time, over which all orders are spread."""
    parts_of_backlog: tuple[Backlog, ...]
    """Counts of the beginning only, to measure the effect of the batch size."""
    per_batch: int
    """When all orders are counted."""
    state_per_batch: int
    """When the state is measured after each batch: smaller batches, more measurements."""
    tidy_seconds: int
    """Twice the delay after which Spark removes state files that it no longer needs."""
    warm_up_seconds: int
    shared_backlog: Backlog
    """What workers of a cluster count, half of it one alone and half of it two. Some batches more
    than two are left to these, whatever the job counts while it stops."""
    rates: tuple[int, ...]
    """Orders published per second, one after the other."""
    seconds: int
    """At each rate."""


FULL = Size(
    rounds=3,
    users=10_000,
    items=1_000,
    orders=5_000_000,
    hours=30,
    parts_of_backlog=(
        Backlog(per_batch=10_000, orders=400_000),
        Backlog(per_batch=100_000, orders=2_000_000),
    ),
    per_batch=300_000,
    state_per_batch=50_000,
    tidy_seconds=120,
    warm_up_seconds=20,
    shared_backlog=Backlog(per_batch=200_000, orders=4_000_000),
    rates=(50, 1_000),
    seconds=60,
)
QUICK = Size(
    rounds=1,
    users=10_000,
    items=1_000,
    orders=600_000,
    hours=8,
    parts_of_backlog=(
        Backlog(per_batch=10_000, orders=100_000),
        Backlog(per_batch=100_000, orders=600_000),
    ),
    per_batch=50_000,
    state_per_batch=20_000,
    tidy_seconds=120,
    warm_up_seconds=10,
    shared_backlog=Backlog(per_batch=25_000, orders=400_000),
    rates=(50, 1_000),
    seconds=15,
)
TINY = Size(
    rounds=1,
    users=500,
    items=100,
    orders=4_000,
    hours=8,
    parts_of_backlog=(),
    per_batch=1_000,
    state_per_batch=1_000,
    tidy_seconds=0,
    warm_up_seconds=0,
    shared_backlog=Backlog(per_batch=500, orders=8_000),
    rates=(50,),
    seconds=2,
)
