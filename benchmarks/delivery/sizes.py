"""How much is measured: in full, quickly, or just enough to run all of the code."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Rounds of everything, and how much of each kind of work in a round."""

    rounds: int
    append_seconds: int
    append_clients: tuple[int, ...]
    """The size of the pool of one api, and more than the processors can serve at a time."""
    append_tasks: tuple[int, ...]
    """Tasks that append at once; the number of the peer's threads, 8, is one of these."""
    drain_rows: int
    peer_rows: int
    """For relays that are too slow for `drain_rows`; only their rate is compared."""
    rates: tuple[int, ...]
    """Transactions per second."""
    pair_rates: tuple[int, ...]
    """The same, of the client in Python, which the machine has to carry as well."""
    warm_up_seconds: int
    latency_seconds: int
    writer_seconds: int
    """How long one transaction stays open while others commit."""
    messages: int
    hot_orders: int
    """Of the user with very many; one of ten is closed."""
    hot_refusals: int
    hot_moves: int
    hot_seconds: int
    lengths: tuple[int, ...]
    """Events in a stream."""
    loads: int
    placing_warm_up_seconds: int
    placing_seconds: int
    """Of each variant, with each number of connections."""
    placing_connections: tuple[int, ...]
    order_warm_up_seconds: int
    """Java compiles for a minute, which is a tenth of what an order costs at its begin."""
    order_seconds: int
    order_rates: tuple[int, ...]
    """Orders per second, until there are too many."""
    order_step_seconds: int


FULL = Size(
    rounds=3,
    append_seconds=10,
    append_clients=(8, 32),
    append_tasks=(1, 8, 32),
    drain_rows=1_000_000,
    peer_rows=30_000,
    rates=(500, 2_000, 5_000),
    pair_rates=(500, 2_000),
    warm_up_seconds=10,
    latency_seconds=20,
    writer_seconds=30,
    messages=20_000,
    hot_orders=10_000,
    hot_refusals=310_000,
    hot_moves=10_000,
    hot_seconds=20,
    lengths=(10, 100, 1_000, 10_000),
    loads=30,
    placing_warm_up_seconds=2,
    placing_seconds=5,
    placing_connections=(1, 8, 32),
    order_warm_up_seconds=60,
    order_seconds=20,
    order_rates=(*range(50, 400, 25), *range(400, 1_001, 50)),
    order_step_seconds=20,
)
QUICK = Size(
    rounds=2,
    append_seconds=4,
    append_clients=(8, 32),
    append_tasks=(1, 8, 32),
    drain_rows=200_000,
    peer_rows=8_000,
    rates=(500, 2_000),
    pair_rates=(500, 2_000),
    warm_up_seconds=4,
    latency_seconds=6,
    writer_seconds=8,
    messages=3_000,
    hot_orders=10_000,
    hot_refusals=310_000,
    hot_moves=10_000,
    hot_seconds=8,
    lengths=(10, 100, 1_000, 10_000),
    loads=10,
    placing_warm_up_seconds=1,
    placing_seconds=3,
    placing_connections=(1, 8, 32),
    order_warm_up_seconds=20,
    order_seconds=10,
    order_rates=(50, 100, 150, 200, 250, *range(300, 1_001, 100)),
    order_step_seconds=10,
)
TINY = Size(
    rounds=1,
    append_seconds=2,
    append_clients=(8,),
    append_tasks=(8,),
    drain_rows=4_500,
    peer_rows=200,
    rates=(100,),
    pair_rates=(100,),
    warm_up_seconds=0,
    latency_seconds=1,
    writer_seconds=1,
    messages=300,
    hot_orders=200,
    hot_refusals=200,
    hot_moves=200,
    hot_seconds=1,
    lengths=(10, 100),
    loads=2,
    placing_warm_up_seconds=0,
    placing_seconds=1,
    placing_connections=(8,),
    order_warm_up_seconds=1,
    order_seconds=1,
    order_rates=(10,),
    order_step_seconds=2,
)
