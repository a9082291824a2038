"""What is not expected to run is not behind."""

from observer_svc.groups import Group
from observer_svc.watch import omit_unrequested

GONE, ALIVE = Group(committed={}, is_alive=False), Group(committed={}, is_alive=True)


def test_a_stopped_program_that_starts_on_request_is_not_behind() -> None:
    assert omit_unrequested({"analytics-faust": GONE}) == {}
    assert omit_unrequested({"analytics-faust": ALIVE}) == {"analytics-faust": ALIVE}


def test_a_stopped_worker_is_behind() -> None:
    assert omit_unrequested({"users-worker": GONE}) == {"users-worker": GONE}
