"""A worker that is rewound reads its records again, and all effects are as before."""

import argparse
import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete

from local_stack import ports
from shared.inbox import rewind
from shared.inbox.rewind import Destination, Move
from shared.messaging import consumer_groups
from shared.messaging.records import IncomingRecord
from shared.messaging.topics import TOPICS
from shared.runtime.brokers import Brokers
from shared.runtime.identifiers import new_id
from test_support.counter.counted_records import CREATE_EFFECTS, effects_of, record

GROUP, TOPIC = "orders-worker", "items.v1"
"""Unlike those of most tests: nothing else is in that topic."""
PARTITION = TopicPartition(TOPIC, 1)
BEGAN = datetime(2016, 11, 11, 4, 0, tzinfo=UTC)

DEADLINE_SECONDS = 120
STOP_SECONDS = 60
GARBAGE = b"\x00\xff garbage"


class Log:
    """One partition, and what a group has committed there; `begin` is its first offset."""

    def __init__(
        self, servers: str, producer: AIOKafkaProducer, admin: AIOKafkaAdminClient
    ) -> None:
        self.brokers = Brokers(servers)
        self.begin = 0
        self._producer = producer
        self._admin = admin

    async def write(self, written: IncomingRecord, minute: int) -> int:
        """A record of that minute after BEGAN; its offset."""
        at = BEGAN + timedelta(minutes=minute)
        place = await self._producer.send_and_wait(
            TOPIC,
            written.value,
            written.key,
            partition=PARTITION.partition,
            timestamp_ms=int(at.timestamp() * 1000),
            headers=list(written.headers),
        )
        return int(place.offset)

    async def clear(self) -> None:
        """Delete all records, and let the group continue behind them."""
        await self.apply("latest", accept_gap=True)
        self.begin = await self.committed()
        await self._admin.delete_records({PARTITION: RecordsToDelete(self.begin)})

    async def committed(self) -> int:
        offsets = await self._admin.list_consumer_group_offsets(GROUP)
        return int(offsets[PARTITION].offset) if PARTITION in offsets else 0

    async def plan(self, destination: Destination) -> list[Move]:
        return await rewind.plan(self.brokers, GROUP, rewind.list_partitions(GROUP), destination)

    async def find(self, destination: Destination) -> Move:
        [found] = [each for each in await self.plan(destination) if each.partition == PARTITION]
        return found

    async def apply(self, destination: Destination, *, accept_gap: bool = False) -> None:
        moves = await self.plan(destination)
        await rewind.apply(self.brokers, GROUP, moves, accept_gap=accept_gap)

    async def letters(self) -> int:
        """Dead letters of the group, in the partition."""
        place = TopicPartition(TOPICS[TOPIC].dead_letters_of(GROUP), PARTITION.partition)
        async with AIOKafkaConsumer(**self.brokers.options) as client:
            ends = await client.end_offsets([place])
        return int(ends[place])


@pytest.fixture
async def log(kafka_servers: str, pool: asyncpg.Pool) -> AsyncIterator[Log]:
    """Empty, and the group is at its end."""
    await pool.execute(CREATE_EFFECTS)
    async with AIOKafkaProducer(bootstrap_servers=kafka_servers) as producer:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka_servers)
        await admin.start()
        log = Log(kafka_servers, producer, admin)
        await log.clear()
        yield log
        await admin.close()


@pytest.fixture
def environment(database: str, kafka_servers: str) -> dict[str, str]:
    return os.environ | {
        "DATABASE_URL": database,
        "KAFKA_BOOTSTRAP_SERVERS": kafka_servers,
        "HTTP_PORT": str(ports.find_free()),
    }


@contextmanager
def running_worker(environment: dict[str, str], folder: Path) -> Iterator[None]:
    """A worker that has left its group at exit."""
    script = Path(__file__).with_name("worker_main.py")
    process = subprocess.Popen([sys.executable, script, folder, GROUP, TOPIC], env=environment)
    try:
        yield
        process.terminate()
        assert process.wait(STOP_SECONDS) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not await condition():
            await asyncio.sleep(0.05)


async def consume(log: Log, environment: dict[str, str], folder: Path, end: int) -> None:
    """Let a worker commit up to an offset, and stop it."""

    async def is_there() -> bool:
        return await log.committed() >= end

    with running_worker(environment, folder):
        await until(is_there)


def of_items(counter: UUID, version: int) -> IncomingRecord:
    return replace(record(counter, version), topic=TOPIC)


async def test_a_worker_rewound_to_the_earliest_record_leaves_all_effects_as_they_were(
    log: Log, environment: dict[str, str], pool: asyncpg.Pool, tmp_path: Path
) -> None:
    """Also of a parked stream. A record that is no message has no version: it is the one thing
    that is repeated, as a dead letter."""
    healthy, sick = new_id(), new_id()
    for version in (1, 2, 3):
        await log.write(of_items(healthy, version), minute=version)
    await log.write(replace(of_items(new_id(), 1), headers=[]), minute=3)
    await log.write(replace(of_items(sick, 1), value=GARBAGE), minute=4)
    end = 1 + await log.write(of_items(sick, 2), minute=5)
    await consume(log, environment, tmp_path, end)
    before, letters = await pool.fetch(STATE), await log.letters()
    rewound = await log.find("earliest")

    await log.apply("earliest")

    assert (rewound.now, rewound.then, rewound.again) == (end, log.begin, 6)
    assert await log.committed() == log.begin
    await consume(log, environment, tmp_path, end)
    assert await effects_of(pool, healthy) == [1, 2, 3]
    assert await effects_of(pool, sick) == []
    assert await pool.fetch(STATE) == before
    assert await log.letters() == letters + 1


STATE = """
    SELECT 'version' AS what, stream_id, version FROM consumed_versions
    UNION ALL
    SELECT 'waiting', stream_id, version FROM parked_messages
    ORDER BY 1, 2, 3
"""


async def test_without_the_version_of_its_stream_a_record_has_its_effect_again(
    log: Log, environment: dict[str, str], pool: asyncpg.Pool, tmp_path: Path
) -> None:
    """The negative control: the records are read again, and it is the version that drops them."""
    known, forgotten = new_id(), new_id()
    await log.write(of_items(forgotten, 1), minute=0)
    end = 1 + await log.write(of_items(known, 1), minute=1)
    await consume(log, environment, tmp_path, end)
    await pool.execute("DELETE FROM consumed_versions WHERE stream_id = $1", forgotten)

    await log.apply("earliest")
    await consume(log, environment, tmp_path, end)

    assert await effects_of(pool, forgotten) == [1, 1]
    assert await effects_of(pool, known) == [1]


async def test_a_time_leads_to_its_first_record_or_the_next_one(log: Log) -> None:
    """The cluster that took over continues at 04:03, and some records are read twice."""
    offsets = [await log.write(of_items(new_id(), 1), minute) for minute in (1, 3, 3, 5)]
    end = offsets[-1] + 1

    async def offset_at(minute: int) -> int:
        return (await log.find(BEGAN + timedelta(minutes=minute))).then

    assert await offset_at(3) == offsets[1]
    assert await offset_at(4) == offsets[3]
    assert await offset_at(6) == end
    assert (await log.find(datetime(1960, 1, 1, tzinfo=UTC))).then == log.begin


async def test_records_are_not_skipped_unless_that_is_accepted(log: Log) -> None:
    before = await log.committed()
    end = 1 + await log.write(of_items(new_id(), 1), minute=0)

    with pytest.raises(rewind.NotRewound, match="1 records that orders-worker has not read"):
        await log.apply("latest")
    assert await log.committed() == before

    await log.apply("latest", accept_gap=True)
    assert await log.committed() == end


async def test_nothing_is_changed_while_a_worker_runs(
    log: Log, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor when it is not seen, as it has started meanwhile: Kafka refuses."""
    end = 1 + await log.write(of_items(new_id(), 1), minute=0)

    async def is_there() -> bool:
        return await log.committed() >= end

    async def see_nothing(*_: object) -> None:
        """A check that was made before the worker started."""

    async def find_reason() -> str:
        with pytest.raises(SystemExit) as refused:
            await command(log, "--to", "earliest", "--apply")
        return str(refused.value)

    with running_worker(environment, tmp_path):
        await until(is_there)
        seen = await find_reason()
        monkeypatch.setattr(consumer_groups, "require_no_member", see_nothing)
        unseen = await find_reason()

    assert seen == (
        "hometown: no offset was changed: 1 process is in the group orders-worker: stop"
        " orders-worker first; one that was killed leaves the group after 8 s"
    )
    assert "a process has joined the group orders-worker meanwhile" in unseen
    assert await log.committed() == end


async def test_the_command_changes_nothing_unless_it_is_asked_to(
    log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    end = 1 + await log.write(of_items(new_id(), 1), minute=0)
    await log.apply("latest", accept_gap=True)

    await command(log, "--to", "earliest")
    shown = capsys.readouterr().out
    assert await log.committed() == end
    await command(log, "--to", "earliest", "--apply")
    done = capsys.readouterr().out

    assert f"{TOPIC}/1: {end} -> {log.begin}, 1 records again\n" in shown
    assert shown.endswith("again: add --apply\n")
    assert done.endswith("from its next start on\n")
    assert await log.committed() == log.begin


async def test_an_unavailable_broker_is_reported_in_one_line() -> None:
    arguments = parse("--to", "earliest")

    with pytest.raises(SystemExit, match="hometown: try again: ") as refused:
        await rewind.run(arguments, Brokers("127.0.0.1:1"), GROUP)

    assert "\n" not in str(refused.value)


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    rewind.add_to(parser.add_subparsers(required=True))
    return parser.parse_args(["rewind", *words])


async def command(log: Log, *words: str) -> None:
    await rewind.run(parse(*words), log.brokers, GROUP)
