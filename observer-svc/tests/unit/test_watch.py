"""What the observer reports of what it could read, and of what it could not."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError, KafkaTimeoutError

from observer_svc import databases, gauges, groups
from observer_svc.databases import Database
from observer_svc.gauges import (
    ALIVE,
    DISK_FREE,
    DISK_SIZE,
    EVENT_LAG,
    LAG,
    PARKED,
    REACHED,
    RELAY_STATE,
)
from observer_svc.groups import Group, Logs
from observer_svc.report import ConsumerProgress, Place, Report
from observer_svc.states import FULL_SAMPLES, GONE_SAMPLES, State
from observer_svc.watch import BROKER, GAP_SECONDS_MAX, Watch
from shared.inbox.parked import ParkedCount
from shared.messaging.topics import TOPICS, list_partitions
from shared.outbox.backlog import Backlog
from shared.runtime.brokers import Brokers
from shared.runtime.declarations import load_declarations
from test_support.written_log import written_log

PUBLISHED = Backlog(rows=0, seconds=0.0, is_held=True, beat_seconds=0.1)
GONE = Group(committed={}, members=0)
FIRST = TopicPartition("orders.v1", 0)
JOB = ConsumerProgress(
    consumer="analytics-job",
    beat_seconds=1.0,
    commit_seconds=None,
    event_seconds=None,
    watermark_seconds=None,
)


@dataclass
class Servers:
    """In place of the databases and the brokers: what they answer, or the error that they cause."""

    databases: dict[str, Database | Exception] = field(
        default_factory=lambda: {
            "users": Database(backlog=PUBLISHED),
            "orders": Database(backlog=PUBLISHED),
            "analytics": Database(progress=[JOB], positions={"analytics-job": {FIRST: 7}}),
        }
    )
    groups: dict[str, Group] = field(default_factory=dict)
    end: int | Exception = 9
    failures: dict[str | TopicPartition, Exception] = field(default_factory=dict)

    async def read_database(
        self, dsn: str, *, has_event_store: bool, has_offsets: bool
    ) -> Database:
        found = self.databases[dsn]
        if isinstance(found, Exception):
            raise found
        assert has_event_store == (found.backlog is not None)
        assert has_offsets == (dsn == "analytics")
        return found

    async def read_logs(self, _: Brokers, names: Collection[str]) -> Logs:
        if isinstance(self.end, Exception):
            raise self.end
        members = Group(committed={}, members=1)
        partitions = list_partitions(TOPICS)
        if self.failures:
            partitions.remove(FIRST)
        return Logs(
            ends=dict.fromkeys(partitions, self.end),
            groups={name: self.groups.get(name, members) for name in names},
            failures=self.failures,
        )


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    servers = Servers()
    monkeypatch.setattr(databases, "read", servers.read_database)
    monkeypatch.setattr(groups, "read", servers.read_logs)
    return servers


@pytest.fixture
def watch(servers: Servers) -> Watch:
    return Watch(Brokers("nowhere"), {name: name for name in servers.databases}, Path("/"))


async def measure(watch: Watch, times: int = 1) -> Report:
    for _ in range(times):
        await watch.measure()
    assert watch.report is not None
    return watch.report


def numbers(gauge: Any, report: Report) -> Mapping[tuple[str, ...], float]:
    return gauges.READS[gauge](report)


async def test_nothing_is_reported_before_a_measurement(watch: Watch) -> None:
    assert watch.report is None
    assert await watch.check() == "nothing is measured yet"

    await measure(watch)

    assert await watch.check() is None


async def test_a_group_begins_where_it_has_committed_nothing(
    watch: Watch, servers: Servers
) -> None:
    servers.groups["users-worker"] = Group(committed={FIRST: 7}, members=2)

    lags = numbers(LAG, await measure(watch))

    assert lags["users-worker", "orders.v1", "0"] == 2
    assert lags["users-worker", "orders.v1", "1"] == 9
    [reads] = [each.reads for each in load_declarations().processes if each.name == "users-worker"]
    asked = {topic for group, topic, _ in lags if group == "users-worker"}
    assert asked == {*reads} != {*TOPICS}, "it reads no other topics"


async def test_a_consumer_with_offsets_of_its_own_is_asked_of_its_database(watch: Watch) -> None:
    report = await measure(watch)

    lags = numbers(LAG, report)
    assert lags["analytics-job", "orders.v1", "0"] == 2
    assert lags["analytics-job", "users.v1", "0"] == 9
    assert numbers(ALIVE, report)["analytics-job",] == 1
    assert numbers(EVENT_LAG, report) == {}, "nothing is counted yet"


async def test_a_job_without_a_recent_beat_has_stopped(watch: Watch, servers: Servers) -> None:
    silent = ConsumerProgress(
        consumer=JOB.consumer,
        beat_seconds=99.0,
        commit_seconds=99.0,
        event_seconds=100.0,
        watermark_seconds=200.0,
    )
    servers.databases["analytics"] = Database(progress=[silent])

    report = await measure(watch, GONE_SAMPLES)

    states = {each.state for each in report.consumers if each.place.consumer == JOB.consumer}
    assert states == {State.STOP}
    assert numbers(EVENT_LAG, report) == {(JOB.consumer,): 100.0}


async def test_a_worker_that_was_never_there_has_stopped(watch: Watch, servers: Servers) -> None:
    servers.groups["users-worker"] = GONE

    report = await measure(watch, GONE_SAMPLES)

    stopped = {each.place.consumer for each in report.consumers if each.state is State.STOP}
    assert stopped == {"users-worker"}
    assert report.state is State.STOP


async def test_a_program_that_starts_on_request_is_not_missed(
    watch: Watch, servers: Servers
) -> None:
    servers.groups["analytics-faust"] = Group(committed={FIRST: 1}, members=0)
    assert ("analytics-faust",) not in numbers(ALIVE, await measure(watch))

    servers.groups["analytics-faust"] = Group(committed={FIRST: 1}, members=1)
    assert ("analytics-faust",) in numbers(ALIVE, await measure(watch))


async def test_of_a_server_that_cannot_be_read_nothing_old_is_reported(
    watch: Watch, servers: Servers
) -> None:
    await measure(watch)
    servers.databases["users"], servers.end = OSError("down"), KafkaConnectionError()

    report = await measure(watch)

    assert report.consumers == []
    assert numbers(RELAY_STATE, report).keys() == {("orders",)}
    assert numbers(REACHED, report) == {
        ("users",): 0,
        ("orders",): 1,
        ("analytics",): 1,
        (BROKER,): 0,
    }
    assert report.servers["users"] == "OSError", "any caller can read it"


async def test_what_was_seen_before_an_outage_is_judged_with_what_is_seen_after(
    watch: Watch, servers: Servers
) -> None:
    """One failed measurement among ten does not make of a stop, or of a stall, an OK."""
    gone, stuck = Backlog(rows=1, seconds=9.0, is_held=False, beat_seconds=None), {FIRST: 7}
    servers.databases["users"] = Database(backlog=gone)
    servers.groups["users-worker"] = Group(committed=stuck, members=1)
    await measure(watch, FULL_SAMPLES - 1)
    servers.databases["users"], servers.end = OSError("down"), KafkaConnectionError()
    await measure(watch)
    servers.databases["users"], servers.end = Database(backlog=gone), 9

    report = await measure(watch)

    states = {each.place.values: each.state for each in report.consumers}
    assert states["users-worker", "orders.v1", "0"] is State.STALL
    assert [each.state for each in report.relays] == [State.STOP, State.OK]


async def test_what_was_seen_long_before_is_forgotten(
    watch: Watch, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first measurement of a program that starts on request again would be a stall."""
    monkeypatch.setattr("observer_svc.watch.time", clock := SimpleNamespace(now=1_000.0))
    clock.monotonic = lambda: clock.now
    servers.groups["analytics-faust"] = Group(committed={FIRST: 1}, members=1)
    report = await measure(watch, FULL_SAMPLES)
    assert report.state is State.STALL
    servers.groups["analytics-faust"] = Group(committed={FIRST: 1}, members=0)
    await measure(watch)

    clock.now += GAP_SECONDS_MAX + 1
    servers.groups["analytics-faust"] = Group(committed={FIRST: 1}, members=1)

    states = {
        each.place.consumer: each.state
        for each in (await measure(watch)).consumers
        if each.place == Place("analytics-faust", *FIRST)
    }
    assert states == {"analytics-faust": State.OK}


async def test_of_a_partition_that_cannot_be_read_alone_nothing_is_reported(
    watch: Watch, servers: Servers
) -> None:
    servers.failures = {FIRST: KafkaTimeoutError()}

    report = await measure(watch)

    lags = numbers(LAG, report)
    assert ("users-worker", "orders.v1", "0") not in lags
    assert lags["users-worker", "orders.v1", "1"] == lags["analytics-job", "orders.v1", "1"] == 9
    assert report.servers[BROKER] == "KafkaTimeoutError, orders.v1/0"
    assert numbers(REACHED, report)[BROKER,] == 0


async def test_while_its_database_is_down_nothing_is_reported_of_a_job(
    watch: Watch, servers: Servers
) -> None:
    servers.databases["analytics"] = OSError("down")

    report = await measure(watch, GONE_SAMPLES)

    assert JOB.consumer not in {each.place.consumer for each in report.consumers}
    assert report.state is State.OK


async def test_a_job_that_was_never_there_has_stopped(watch: Watch, servers: Servers) -> None:
    """A database can have its offsets from a release without beats."""
    servers.databases["analytics"] = Database(positions={JOB.consumer: {FIRST: 7}})

    report = await measure(watch, GONE_SAMPLES)

    assert numbers(LAG, report)[JOB.consumer, "orders.v1", "0"] == 2
    assert numbers(ALIVE, report)[JOB.consumer,] == 0
    assert report.state is State.STOP


async def test_an_old_report_is_no_series(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """A measurement that hangs must not leave values that look like current ones."""
    await measure(watch)
    assert watch.get_current() is watch.report

    monkeypatch.setattr("observer_svc.watch.SILENCE_SECONDS_MAX", 0.0)

    assert watch.get_current() is None
    assert str(await watch.check()).startswith("nothing was measured for")


async def test_a_measurement_of_the_broker_that_hangs_ends(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(groups, "read", hang)
    monkeypatch.setattr("observer_svc.watch.BROKER_SECONDS_MAX", 0.0)

    assert (await measure(watch)).servers[BROKER] == "TimeoutError"


async def test_parked_streams_are_a_series_before_there_are_any(
    watch: Watch, servers: Servers
) -> None:
    servers.databases["users"] = Database(
        backlog=PUBLISHED,
        parked=dict.fromkeys(("users-worker", "renamed"), ParkedCount(streams=2, seconds=3.0)),
    )

    parked = numbers(PARKED, await measure(watch))

    assert parked["users", "users-worker"] == parked["users", "renamed"] == 2
    assert parked["users", "users-relay"] == 0
    assert ("orders", "orders-api") not in parked


async def test_an_outage_is_logged_once(watch: Watch, servers: Servers) -> None:
    with written_log() as written:
        servers.end = KafkaConnectionError()
        await measure(watch, 3)
        servers.end = 9
        await measure(watch, 2)

    assert [(line["level"], line["message"]) for line in written.lines] == [
        ("warning", "kafka cannot be measured"),
        ("info", "kafka can be measured again"),
    ]


async def test_a_folder_that_cannot_be_seen_is_no_series(servers: Servers) -> None:
    lost = await measure(Watch(Brokers("nowhere"), {}, Path("/nowhere")))
    seen = await measure(Watch(Brokers("nowhere"), {}, Path("/")))

    assert (lost.disk, numbers(DISK_FREE, lost)) == (None, {})
    assert 0 < numbers(DISK_FREE, seen)[()] <= numbers(DISK_SIZE, seen)[()]
