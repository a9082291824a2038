"""The table of `make lag` has a line for each consumer and topic."""

from observer_svc.lag import Sample
from observer_svc.table import format_lags

EXPOSED = """
# TYPE hometown_consumer_lag gauge
hometown_consumer_lag{consumer="users-worker",topic="orders.v1",partition="0"} 1200
hometown_consumer_lag{consumer="users-worker",topic="orders.v1",partition="1"} 34
hometown_consumer_lag{consumer="analytics-job",topic="orders.v1",partition="0"} 0
# TYPE hometown_consumer_state gauge
hometown_consumer_state{consumer="users-worker"} 3
hometown_consumer_state{consumer="analytics-job"} 0
# TYPE hometown_outbox_rows gauge
hometown_outbox_rows{database="users"} 7
# TYPE hometown_outbox_age_seconds gauge
hometown_outbox_age_seconds{database="users"} 12.5
# TYPE hometown_observer_reached gauge
hometown_observer_reached{server="users"} 1
hometown_observer_reached{server="orders"} 0
"""


EXPOSED_STATE = 'hometown_consumer_state{consumer="group"} 0\n'


def test_lags_are_summed_and_listed_by_partition() -> None:
    lines = format_lags(EXPOSED).splitlines()

    assert lines[:3] == [
        "consumer       topic      lag    by partition  state",
        "analytics-job  orders.v1  0      0             OK",
        "users-worker   orders.v1  1,234  1200 34       STOP",
    ]


def test_tv29_the_lag_of_a_group_is_its_ends_minus_what_it_has_committed() -> None:
    behind = (0, 0, 1, 0, 0, 3, 0, 0)
    ends = (8905, 8915, 9845, 8072, 8008, 8319, 8102, 12739)
    samples = [
        Sample(position=end - records, end=end, is_alive=True)
        for records, end in zip(behind, ends, strict=True)
    ]
    labels = 'consumer="group",topic="topic"'
    exposed = "".join(
        f'hometown_consumer_lag{{{labels},partition="{number}"}} {sample.lag}\n'
        for number, sample in enumerate(samples)
    )

    assert [sample.lag for sample in samples] == list(behind)
    assert "group     topic  4    0 0 1 0 0 3 0 0" in format_lags(EXPOSED_STATE + exposed)


def test_backlogs_follow_and_what_cannot_be_measured_is_named() -> None:
    text = format_lags(EXPOSED)

    assert "7  rows in the outbox of users" in text
    assert "12.5  seconds that the oldest of them has waited (users)" in text
    assert text.endswith("orders cannot be measured now\n")
