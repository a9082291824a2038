"""How much is measured: in full, quickly, or as little as shows that the benchmark itself works."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Rounds of everything, and how much of each kind of work in a round."""

    rounds: int
    append_seconds: int
    drain_rows: int
    peer_rows: int
    """For relays that are too slow for `drain_rows`; their rate is what counts."""
    rates: tuple[int, ...]
    """Transactions per second."""
    pair_rates: tuple[int, ...]
    """The same, of the client in Python, which the machine has to carry as well."""
    warm_up_seconds: int
    latency_seconds: int
    writer_seconds: int
    """How long a transaction stays open beside the others."""
    messages: int
    lengths: tuple[int, ...]
    """Events in a stream."""
    loads: int


FULL = Size(
    rounds=3,
    append_seconds=10,
    drain_rows=1_000_000,
    peer_rows=30_000,
    rates=(500, 2_000, 5_000),
    pair_rates=(500, 2_000),
    warm_up_seconds=10,
    latency_seconds=20,
    writer_seconds=30,
    messages=20_000,
    lengths=(10, 100, 1_000, 10_000),
    loads=30,
)
QUICK = Size(
    rounds=2,
    append_seconds=4,
    drain_rows=200_000,
    peer_rows=8_000,
    rates=(500, 2_000),
    pair_rates=(500, 2_000),
    warm_up_seconds=4,
    latency_seconds=6,
    writer_seconds=8,
    messages=3_000,
    lengths=(10, 100, 1_000, 10_000),
    loads=10,
)
TINY = Size(
    rounds=1,
    append_seconds=1,
    drain_rows=4_500,
    peer_rows=200,
    rates=(100,),
    pair_rates=(100,),
    warm_up_seconds=0,
    latency_seconds=1,
    writer_seconds=1,
    messages=300,
    lengths=(10, 100),
    loads=2,
)
