"""The table of `make lag` has a line for each consumer and topic, and one for each relay."""

from dataclasses import replace
from datetime import UTC, datetime

from observer_svc.disk import Disk
from observer_svc.report import (
    JSON,
    ConsumerLag,
    ParkedStreams,
    Place,
    RelayBacklog,
    Report,
)
from observer_svc.states import State
from observer_svc.table import format_report
from shared.inbox.parked import ParkedCount
from shared.outbox.backlog import Backlog


def lag(consumer: str, topic: str, partition: int, records: int, state: State) -> ConsumerLag:
    return ConsumerLag(
        place=Place(consumer, topic, partition),
        position=10,
        end=10 + records,
        lag=records,
        is_alive=state is not State.STOP,
        state=state,
    )


REPORT = Report(
    measured_at=datetime(2026, 1, 1, tzinfo=UTC),
    state=State.STOP,
    consumers=[
        lag("analytics-job", "orders.v1", 0, 0, State.OK),
        lag("users-worker", "orders.v1", 0, 1200, State.STALL),
        lag("users-worker", "orders.v1", 1, 34, State.OK),
    ],
    progress=[],
    relays=[
        RelayBacklog(
            name="users-relay",
            database="users",
            backlog=Backlog(rows=7, seconds=12.5, is_held=False, beat_seconds=None),
            state=State.STOP,
        )
    ],
    parked=[
        ParkedStreams(
            database="users", consumer="users-worker", count=ParkedCount(streams=2, seconds=90.0)
        ),
        ParkedStreams(
            database="users", consumer="users-relay", count=ParkedCount(streams=0, seconds=0.0)
        ),
    ],
    clock_skew_seconds={"users": 0.0},
    servers={"users": None, "orders": "it is down", "kafka": None},
    disk=Disk(free=5 << 20, size=100 << 20),
)


def test_lags_are_summed_and_listed_by_partition_with_the_worst_state() -> None:
    assert format_report(REPORT).splitlines() == [
        "consumer       topic      lag    by partition  state",
        "analytics-job  orders.v1  0      0             OK",
        "users-worker   orders.v1  1,234  1200 34       STALL",
        "",
        "relay        rows  oldest  loop   state",
        "users-relay  7     12.5 s  never  STOP",
        "",
        "streams parked by users-worker: 2, the first of them 90 s ago",
        "the disk of DATA_FOLDER is nearly full: 5 MiB are free",
        "orders cannot be measured: it is down",
    ]


def test_where_all_is_well_nothing_follows_the_tables() -> None:
    roomy = Disk(free=10 << 20, size=100 << 20)
    well = replace(REPORT, parked=[], servers={"users": None}, disk=roomy)

    assert format_report(well).splitlines()[-1].startswith("users-relay")


def test_a_report_is_the_same_after_its_way_through_text() -> None:
    assert JSON.validate_json(JSON.dump_json(REPORT)) == REPORT


def test_tv29_the_lag_of_a_group_is_its_ends_minus_what_it_has_committed() -> None:
    behind = (0, 0, 1, 0, 0, 3, 0, 0)
    lags = [lag("group", "topic", number, each, State.OK) for number, each in enumerate(behind)]

    text = format_report(replace(REPORT, consumers=lags))

    assert "group     topic  4    0 0 1 0 0 3 0 0" in text
