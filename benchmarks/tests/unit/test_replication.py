"""Which broker has which replica, by the numbers of the classic book."""

from fractions import Fraction

import pytest

from benchmarks.capacity.plan import MEGABYTE
from benchmarks.capacity.replication import (
    compute_leader_share,
    compute_quota,
    count_leaders,
    count_mirrors,
    count_replicas,
    order_brokers,
    place_replicas,
)

BROKERS = range(6)


def test_tv18_thirty_replicas_are_five_on_each_of_six_brokers() -> None:
    placed = place_replicas(BROKERS, partitions=10, replicas=3)

    assert count_replicas(placed) == dict.fromkeys(BROKERS, 5)
    assert count_leaders(placed).total() == 10
    assert set(count_leaders(placed).values()) == {1, 2}


def test_tv18_each_partition_begins_one_broker_later() -> None:
    placed = place_replicas(BROKERS, partitions=10, replicas=3, first=4)

    assert placed[:3] == [[4, 5, 0], [5, 0, 1], [0, 1, 2]]
    assert set(count_replicas(placed).values()) == {5}


def test_tv18_neighbours_are_in_different_racks() -> None:
    order = order_brokers([[0, 1, 2], [3, 4, 5]])
    [[leader, follower]] = place_replicas(order, partitions=1, replicas=2, first=order.index(4))

    assert order == [0, 3, 1, 4, 2, 5]
    assert (leader, follower) == (4, 2)


def test_racks_of_different_sizes_are_in_turn_as_long_as_they_last() -> None:
    assert order_brokers([[0, 1, 2], [3]]) == [0, 3, 1, 2]


def test_no_broker_has_two_replicas_of_a_partition() -> None:
    for brokers in place_replicas(BROKERS, partitions=12, replicas=6):
        assert len({*brokers}) == 6
    with pytest.raises(ValueError, match="6 brokers cannot have 7 replicas"):
        place_replicas(BROKERS, partitions=1, replicas=7)


@pytest.mark.parametrize(("clusters", "mirrors"), [(3, 6), (5, 20)])
def test_tv22_each_cluster_has_a_mirror_from_each_other_one(clusters: int, mirrors: int) -> None:
    assert count_mirrors(clusters) == mirrors
    assert count_mirrors(clusters, processes=2) == 2 * mirrors


def test_tv22_a_quota_is_counted_by_each_broker_alone() -> None:
    assert compute_quota(10 * MEGABYTE, brokers=5) == 50 * MEGABYTE


@pytest.mark.parametrize(("replicas", "percent"), [(2, 50), (3, 33)])
def test_tv22_a_broker_leads_one_of_its_replicas_of_a_partition(
    replicas: int, percent: int
) -> None:
    assert int(100 * compute_leader_share(replicas)) == percent
    placed = place_replicas(BROKERS, partitions=30, replicas=replicas)
    leaders, held = count_leaders(placed), count_replicas(placed)
    assert {Fraction(leaders[each], held[each]) for each in BROKERS} == {
        compute_leader_share(replicas)
    }
