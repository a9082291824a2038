"""The holder of a lease stops before anybody else may start."""

import pytest

from shared.identifiers import new_id
from shared.lease import LEASE_SECONDS, SAFETY_SECONDS, Lease, LeaseLost


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_lease_ends_by_the_own_clock_a_little_early() -> None:
    clock = Clock()
    lease = Lease(new_id(), 1, clock.now + LEASE_SECONDS - SAFETY_SECONDS, clock)
    lease.check()

    clock.now += LEASE_SECONDS - SAFETY_SECONDS

    with pytest.raises(LeaseLost):
        lease.check()
