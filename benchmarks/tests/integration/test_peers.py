"""Each peer of the analytics answers a small history; those that wait for what is late, exactly."""

import asyncio
from collections.abc import Iterator

import pytest

from benchmarks.analytics import shop_history
from benchmarks.analytics.job_sizes import TINY
from benchmarks.analytics.peers import peer as peers
from benchmarks.analytics.peers.peer import Peer
from benchmarks.analytics.peers.programs import PEERS
from benchmarks.analytics.true_cells import Cells, count_wrong
from fetching.java_compiler import has_java_compiler
from local_stack.kafka import KAFKA
from local_stack.stack_spec import StackContext, StackSpec
from local_stack.testing import throwaway_stack
from shared.messaging import topics
from shared.runtime.brokers import Brokers

*_, FLINK, FLOOR = (peer.name for peer in PEERS)


@pytest.fixture(scope="module")
def context() -> Iterator[StackContext]:
    with throwaway_stack(StackSpec(processes=(KAFKA,))) as stack:
        yield stack


@pytest.fixture(scope="module")
def right(context: StackContext) -> Cells:
    """The cells of the history that is in the topics."""

    async def fill() -> Cells:
        await topics.create(Brokers(context.address("kafka")))
        return (await shop_history.fill(context.address("kafka"), TINY)).cells()

    return asyncio.run(fill())


@pytest.mark.verify(part="benchmarks")
@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name.replace(" ", "-"))
def test_each_peer_answers(peer: Peer, context: StackContext, right: Cells) -> None:
    if peer.name != FLOOR and not has_java_compiler():
        pytest.skip("no javac")
    run = asyncio.run(peers.run(peer, context, TINY.orders))

    assert run.marks[-1].joined == TINY.orders
    assert run.started_at < run.first_at
    assert run.resident_bytes_max > 0
    if peer.name in (FLINK, FLOOR):
        assert count_wrong(run.cells, right) == 0
    else:
        assert run.cells.keys() & right.keys()
