"""What real servers answer: groups and ends of logs, and what the tables of a database show."""

import time
from collections.abc import Iterator
from types import SimpleNamespace

import psycopg
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from asyncpg import UndefinedTableError

from local_stack.testing import Databases
from observer_svc import databases, groups
from shared.messaging.topics import TOPICS, list_partitions
from shared.runtime.brokers import Brokers
from shared.runtime.identifiers import new_id
from test_support.waits import HANGS_AFTER_SECONDS

COUNTED = """
    INSERT INTO batches (query_id, batch_id, offsets, trace_id, counted, late, duplicates,
        cancellations, ignored, bad)
    VALUES (gen_random_uuid(), 1, '{"orders.v1": {"0": [3, 7]}}', '', 4, 0, 0, 0, 0, 0)
"""
BEAT = "INSERT INTO beats VALUES ('analytics-job', now() - interval '20 seconds')"


@pytest.fixture
def database(databases: Databases) -> Iterator[str]:
    with databases.create("shared") as dsn:
        yield dsn


@pytest.fixture
def analytics(databases: Databases) -> Iterator[str]:
    with databases.create("shared", "analytics_spark") as dsn:
        yield dsn


async def test_of_a_group_its_members_and_offsets_are_read_and_the_ends_of_all_logs(
    kafka_servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound in ("READ_SECONDS_MAX", "ASK_SECONDS_MAX"):
        monkeypatch.setattr(groups, bound, HANGS_AFTER_SECONDS)
    monkeypatch.setattr(groups, "REQUEST_MILLISECONDS_MAX", 1000 * HANGS_AFTER_SECONDS)
    group, partition = f"test-{new_id()}", TopicPartition("items.v1", 0)
    async with AIOKafkaProducer(bootstrap_servers=kafka_servers) as producer:
        sent = await producer.send_and_wait(partition.topic, b"{}", partition=partition.partition)
    async with AIOKafkaConsumer(
        partition.topic, bootstrap_servers=kafka_servers, group_id=group, enable_auto_commit=False
    ) as consumer:
        await consumer.commit({partition: sent.offset})

        logs = await groups.read(Brokers(kafka_servers), [group, "was-never-there"])

    assert logs.failures == {}
    assert logs.ends.keys() == set(list_partitions(TOPICS))
    assert logs.ends[partition] > sent.offset
    found, missing = logs.groups[group], logs.groups["was-never-there"]
    assert (found.committed[partition], found.members) == (sent.offset, 1)
    assert (missing.committed, missing.members) == ({}, 0)


async def test_of_a_database_only_what_it_has_is_read(database: str) -> None:
    found = await databases.read(database, has_event_store=True, has_offsets=False)

    assert found.backlog is not None
    assert found.backlog.rows == 0
    assert (found.parked, found.positions, found.progress) == ({}, {}, ())
    assert abs(found.clock_skew_seconds) < 5


async def test_offsets_of_a_consumer_are_read_by_its_views(analytics: str) -> None:
    with psycopg.connect(analytics) as connection:
        connection.execute(COUNTED)
        connection.execute(BEAT)

    found = await databases.read(analytics, has_event_store=False, has_offsets=True)

    assert found.backlog is None
    assert found.positions == {"analytics-job": {TopicPartition("orders.v1", 0): 7}}
    [progress] = found.progress
    assert progress.consumer == "analytics-job"
    assert 20 <= progress.beat_seconds < 100


async def test_a_database_without_the_views_that_are_declared_cannot_be_measured(
    database: str,
) -> None:
    """The offsets would all be zero, and the lag a whole log."""
    with pytest.raises(UndefinedTableError):
        await databases.read(database, has_event_store=True, has_offsets=True)


@pytest.mark.parametrize("ahead_seconds", [-60, 60])
async def test_a_clock_that_is_off_is_seen(
    database: str, monkeypatch: pytest.MonkeyPatch, ahead_seconds: float
) -> None:
    skewed = SimpleNamespace(time=lambda: time.time() + ahead_seconds)
    monkeypatch.setattr(databases, "time", skewed)

    found = await databases.read(database, has_event_store=True, has_offsets=False)

    assert found.clock_skew_seconds == pytest.approx(-ahead_seconds, abs=5)
