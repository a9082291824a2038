"""A worker acknowledges what was applied or is parked, and nothing else."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import asyncpg
import httpx
import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from local_stack import ports
from shared.eventsourcing.event_store import get_partition
from shared.inbox import parked
from shared.inbox.parked import OperatorAction
from shared.inbox.redrive import redrive
from shared.messaging.messages import StreamKey
from shared.messaging.records import IncomingRecord
from shared.messaging.topics import TOPICS
from shared.runtime.failpoints import Failpoint
from shared.runtime.identifiers import new_id
from test_support.counter.counted_records import CREATE_EFFECTS, record, records
from test_support.counter.counter import TOPIC
from test_support.counter.desk import NAME, Desk
from test_support.counter.letters import read_letters
from test_support.kafka_admin import admin_client
from test_support.waits import HANGS_AFTER_SECONDS

MORE_SECONDS = 3
"""Several times as long as a worker waits before it commits its offsets."""

HANGING_SECONDS = 6
"""Three times as long as `worker_main.py` lets a hanging stop take."""

RECORDS_PER_SECOND = 20
TIMES = 3
FROZEN_SECONDS = 10
"""Longer than a worker's session with Kafka."""

GARBAGE = b"\x00\xff garbage"
WARRANT = OperatorAction(by="test", reason="a test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    process: "subprocess.Popen[bytes]"
    port: int

    async def obstacle(self) -> str:
        """What keeps it from being ready; nothing when it is."""
        async with httpx.AsyncClient() as client:
            try:
                answer = await client.get(f"http://127.0.0.1:{self.port}/health/ready")
            except httpx.TransportError as error:
                return repr(error)
        return "" if answer.is_success else str(answer.json()["detail"])

    async def stop(self) -> int:
        self.process.terminate()
        return await asyncio.to_thread(self.process.wait, HANGS_AFTER_SECONDS)


StartWorker = Callable[[], Worker]


@pytest.fixture
def start_worker(database: str, kafka_servers: str, tmp_path: Path) -> Iterator[StartWorker]:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> Worker:
        port = ports.find_free()
        environment = os.environ | {
            "DATABASE_URL": database,
            "KAFKA_BOOTSTRAP_SERVERS": kafka_servers,
            "HTTP_PORT": str(port),
        }
        script = Path(__file__).with_name("worker_main.py")
        process = subprocess.Popen([sys.executable, script, tmp_path], env=environment)
        started.append(process)
        return Worker(process=process, port=port)

    yield start
    for process in started:
        # One that leaves its group does not keep the next test waiting for its session to end.
        process.terminate()
        try:
            process.wait(HANGS_AFTER_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Topic:
    """The topic of counters as it stands on the broker, and the offsets that are committed."""

    def __init__(self, producer: AIOKafkaProducer, admin: AIOKafkaAdminClient) -> None:
        self.producer = producer
        self.admin = admin

    async def write(self, *written: IncomingRecord) -> list[int]:
        """What a relay would send; the offsets."""
        sent = [
            await self.producer.send(
                TOPIC,
                each.value,
                each.key,
                partition=get_partition(TOPIC, (each.key or b"").decode()),
                headers=list(each.headers),
            )
            for each in written
        ]
        return [place.offset for place in await asyncio.gather(*sent)]

    async def committed(self, counter: UUID) -> int:
        """The offset that a worker would begin with, in the partition of a counter."""
        place = TopicPartition(TOPIC, get_partition(TOPIC, str(counter)))
        offsets = await self.admin.list_consumer_group_offsets(NAME)
        return int(offsets[place].offset) if place in offsets else 0


@pytest.fixture
async def topic(kafka_servers: str) -> AsyncIterator[Topic]:
    async with (
        AIOKafkaProducer(bootstrap_servers=kafka_servers) as producer,
        admin_client(kafka_servers) as admin,
    ):
        yield Topic(producer, admin)


@pytest.fixture
async def desk(pool: asyncpg.Pool) -> Desk:
    """What the worker's own consumer does, in this process; and a view of the same database."""
    await pool.execute(CREATE_EFFECTS)
    return Desk(pool)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(HANGS_AFTER_SECONDS):
        while not await condition():
            await asyncio.sleep(0.05)


async def until_true(condition: Callable[[], bool]) -> None:
    async def there() -> bool:
        return condition()

    await until(there)


async def until_effects(desk: Desk, counter: UUID, *expected: int) -> None:
    async def there() -> bool:
        return len(await desk.effects(counter)) >= len(expected)

    await until(there)
    assert await desk.effects(counter) == list(expected)


async def until_waiting(desk: Desk, counter: UUID, *expected: int) -> None:
    async def there() -> bool:
        return await desk.waiting(counter) == list(expected)

    await until(there)


async def until_exists(file: Path) -> None:
    await until_true(file.exists)


async def catch_up(desk: Desk, topic: Topic) -> None:
    """The worker is at work, and has read what other tests left."""
    counters = {get_partition(TOPIC, str(each)): each for each in (new_id() for _ in range(64))}
    assert len(counters) == TOPICS[TOPIC].partitions
    for counter in counters.values():
        await topic.write(record(counter, 1))
    for counter in counters.values():
        await until_effects(desk, counter, 1)


async def dead_letters(kafka_servers: str, key: bytes) -> list[tuple[bytes | None, dict[str, str]]]:
    """Value and headers of the letters with this key."""
    return [
        (each.value, {name: value.decode() for name, value in each.headers.items()})
        for each in await read_letters(kafka_servers)
        if each.key == key
    ]


async def test_a_record_in_hand_at_a_stop_takes_effect_after_the_restart(
    desk: Desk, topic: Topic, start_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_worker()
    await catch_up(desk, topic)
    (tmp_path / "hold").touch()
    counter = new_id()
    [offset] = await topic.write(record(counter, 1))
    await until_exists(tmp_path / "held")

    assert await worker.stop() == 0
    assert await topic.committed(counter) <= offset
    (tmp_path / "hold").unlink()
    start_worker()

    await until_effects(desk, counter, 1)


@pytest.mark.parametrize("fault", ["stop", "bug"])
async def test_a_worker_whose_stop_hangs_ends_with_status_1(
    desk: Desk, topic: Topic, start_worker: StartWorker, tmp_path: Path, fault: str
) -> None:
    (tmp_path / "hang").touch()
    worker = start_worker()
    await catch_up(desk, topic)
    if fault == "stop":
        worker.process.terminate()
    else:
        (tmp_path / "bug").touch()
        await topic.write(record(new_id(), 1))

    status = await asyncio.to_thread(worker.process.wait, HANGS_AFTER_SECONDS)

    assert status == 1


async def test_without_the_bound_a_stop_that_hangs_does_not_end(
    desk: Desk, topic: Topic, start_worker: StartWorker, tmp_path: Path
) -> None:
    """The negative control: no other worker is started in its place."""
    (tmp_path / "hang").touch()
    (tmp_path / "unbounded").touch()
    worker = start_worker()
    await catch_up(desk, topic)
    worker.process.terminate()

    with pytest.raises(subprocess.TimeoutExpired):
        await asyncio.to_thread(worker.process.wait, HANGING_SECONDS)

    (tmp_path / "hang").unlink()
    assert await asyncio.to_thread(worker.process.wait, HANGS_AFTER_SECONDS) == 0


async def test_a_record_that_took_effect_is_not_read_again_after_a_good_end(
    desk: Desk, topic: Topic, start_worker: StartWorker
) -> None:
    counter = new_id()
    worker = start_worker()
    offsets = await topic.write(*records(counter, 1, 2))
    await until_effects(desk, counter, 1, 2)

    assert await worker.stop() == 0

    assert await topic.committed(counter) == offsets[-1] + 1


async def test_trap_t1_a_failing_reaction_never_moves_the_offset_past_its_record(
    desk: Desk, topic: Topic, start_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_worker()
    await catch_up(desk, topic)
    (tmp_path / "away").touch()
    counter = new_id()
    offsets = await topic.write(*records(counter, 1, 2, 3))

    async def says_so() -> bool:
        return "unavailable" in await worker.obstacle()

    await until(says_so)
    await asyncio.sleep(MORE_SECONDS)
    assert await topic.committed(counter) <= offsets[0]
    assert await worker.stop() == 0
    assert await topic.committed(counter) <= offsets[0]

    (tmp_path / "away").unlink()
    worker = start_worker()
    await until_effects(desk, counter, 1, 2, 3)

    async def is_ready() -> bool:
        return not await worker.obstacle()

    await until(is_ready)


async def test_trap_t1_a_poisonous_record_is_passed_when_its_stream_waits(
    desk: Desk, topic: Topic, start_worker: StartWorker, kafka_servers: str
) -> None:
    worker, sick, healthy = start_worker(), new_id(), new_id()
    offsets = await topic.write(record(sick, 1, value=GARBAGE), *records(sick, 2, 3))
    await topic.write(*records(healthy, 1, 2))
    await until_waiting(desk, sick, 1, 2, 3)
    await until_effects(desk, healthy, 1, 2)

    async def passed() -> bool:
        return await topic.committed(sick) > offsets[-1]

    await until(passed)
    assert await worker.stop() == 0

    [(value, headers)] = await dead_letters(kafka_servers, str(sick).encode())
    assert value == GARBAGE
    assert headers["dlq_offset"] == str(offsets[0])
    assert headers["dlq_reason"].startswith("ValidationError: ")


async def test_trap_t11_while_no_dead_letter_can_be_written_the_worker_stands_and_loses_nothing(
    desk: Desk, topic: Topic, start_worker: StartWorker, kafka_servers: str, tmp_path: Path
) -> None:
    worker = start_worker()
    await catch_up(desk, topic)
    (tmp_path / "no-letters").touch()
    counter = new_id()
    garbage = replace(record(counter, 1), headers=[])
    offsets = await topic.write(garbage, *records(counter, 1, 2))

    async def says_so() -> bool:
        return "writing dead letters" in await worker.obstacle()

    await until(says_so)
    assert await desk.effects(counter) == []
    assert await worker.stop() == 0
    assert await topic.committed(counter) <= offsets[0]

    (tmp_path / "no-letters").unlink()
    start_worker()
    await until_effects(desk, counter, 1, 2)
    [(value, headers)] = await dead_letters(kafka_servers, str(counter).encode())
    assert value == garbage.value
    assert headers["dlq_reason"] == "malformed: no header 'ce_id'"


async def test_the_largest_record_fits_into_the_dead_letter_topic(
    desk: Desk, topic: Topic, start_worker: StartWorker, kafka_servers: str
) -> None:
    """Else it would stop its worker permanently."""
    start_worker()
    counter = new_id()
    largest = b"x" * 1_048_000

    await topic.write(replace(record(counter, 1, value=largest), headers=[]), record(counter, 1))

    await until_effects(desk, counter, 1)
    [(value, _)] = await dead_letters(kafka_servers, str(counter).encode())
    assert value == largest


async def test_a_worker_with_a_bug_in_itself_ends_and_commits_nothing(
    desk: Desk, topic: Topic, start_worker: StartWorker, tmp_path: Path
) -> None:
    """Faust would continue behind the record in hand."""
    worker = start_worker()
    await catch_up(desk, topic)
    (tmp_path / "bug").touch()
    counter = new_id()
    offsets = await topic.write(*records(counter, 1, 2))

    assert await asyncio.to_thread(worker.process.wait, HANGS_AFTER_SECONDS) not in (0, None)

    assert await topic.committed(counter) <= offsets[0]
    (tmp_path / "bug").unlink()
    start_worker()
    await until_effects(desk, counter, 1, 2)


WALK = [
    Failpoint.RECORDS_TAKEN_IN_HAND,
    Failpoint.EFFECTS_WRITTEN,
    Failpoint.EFFECTS_COMMITTED,
    Failpoint.RECORDS_MARKED_DONE,
    Failpoint.DEAD_LETTER_WRITTEN,
    Failpoint.STREAM_PARKED,
]


@pytest.mark.parametrize("point", WALK)
async def test_a_worker_killed_at_any_step_gives_each_message_one_effect(
    desk: Desk,
    topic: Topic,
    start_worker: StartWorker,
    kafka_servers: str,
    tmp_path: Path,
    point: Failpoint,
) -> None:
    worker = start_worker()
    await catch_up(desk, topic)
    (tmp_path / "point").write_text(point)
    (tmp_path / "point").rename(tmp_path / "die-at")
    await until_exists(tmp_path / "armed")
    (tmp_path / "die-at").unlink()
    healthy, sick = [new_id() for _ in range(5)], new_id()
    batch = [record(counter, version) for version in (1, 2, 3) for counter in healthy]

    await topic.write(*batch, record(sick, 1), record(sick, 2, value=GARBAGE), record(sick, 3))

    ended = await asyncio.to_thread(worker.process.wait, HANGS_AFTER_SECONDS)
    assert ended == -signal.SIGKILL
    start_worker()
    await until_waiting(desk, sick, 2, 3)
    for counter in healthy:
        await until_effects(desk, counter, 1, 2, 3)
    assert await desk.effects(sick) == [1]
    letters = await dead_letters(kafka_servers, str(sick).encode())
    assert {value for value, _ in letters} == {GARBAGE}
    assert len(letters) == (2 if point is Failpoint.DEAD_LETTER_WRITTEN else 1)


async def test_a_redrive_keeps_the_order_while_a_live_worker_receives_more(
    desk: Desk, topic: Topic, start_worker: StartWorker
) -> None:
    start_worker()
    await catch_up(desk, topic)
    counter, redriven, sent = new_id(), asyncio.Event(), [1]
    await topic.write(record(counter, 1, value=GARBAGE))
    await until_waiting(desk, counter, 1)

    async def send_more() -> None:
        while not redriven.is_set():
            versions = range(sent[-1] + 1, sent[-1] + 5)
            await topic.write(*records(counter, *versions))
            sent.extend(versions)

    async def many_wait() -> bool:
        return len(await desk.waiting(counter)) > 50

    sending = asyncio.create_task(send_more())
    await until(many_wait)
    async with desk.pool.acquire() as connection, connection.transaction():
        whole = record(counter, 1).value or b""
        await parked.edit(connection, NAME, StreamKey(TOPIC, counter), 1, whole, WARRANT)

    done = await redrive(desk.consumer, desk.pool, StreamKey(TOPIC, counter), WARRANT)
    more = sent[-1] + 50
    await until_true(lambda: sent[-1] > more)
    redriven.set()
    await sending

    assert done.obstacle is None
    assert done.passed < sent[-1], "the redrive met no live worker"
    await until_effects(desk, counter, *sent)
    assert counter not in await desk.reasons()


class Traffic:
    """New counters, each counted once, at an even rate."""

    def __init__(self, topic: Topic) -> None:
        self.counters: list[UUID] = []
        self._topic = topic

    async def send(self) -> None:
        """Endless."""
        while True:
            self.counters.append(new_id())
            await self._topic.write(record(self.counters[-1], 1))
            await asyncio.sleep(1 / RECORDS_PER_SECOND)


@asynccontextmanager
async def traffic(desk: Desk, topic: Topic) -> AsyncIterator[None]:
    """Send while the block runs; after it, each counter has had one effect."""
    sent = Traffic(topic)
    sending = asyncio.create_task(sent.send())
    try:
        yield
    finally:
        sending.cancel()
    for counter in sent.counters:
        await until_effects(desk, counter, 1)


async def until_ready(*workers: Worker) -> None:
    for each in workers:

        async def is_ready(worker: Worker = each) -> bool:
            return not await worker.obstacle()

        await until(is_ready)


async def test_a_worker_goes_on_while_another_one_joins_and_leaves(
    desk: Desk, topic: Topic, start_worker: StartWorker
) -> None:
    worker = start_worker()
    await until_ready(worker)

    async with traffic(desk, topic):
        for _ in range(TIMES):
            other = start_worker()
            await until_ready(other, worker)
            assert await other.stop() == 0

    assert await worker.stop() == 0


async def test_a_worker_that_was_frozen_goes_on_in_its_group(
    desk: Desk, topic: Topic, start_worker: StartWorker
) -> None:
    """Longer than its session: meanwhile the other one has its partitions."""
    frozen, other = start_worker(), start_worker()
    await until_ready(frozen, other)

    async with traffic(desk, topic):
        frozen.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(FROZEN_SECONDS)
        frozen.process.send_signal(signal.SIGCONT)
        await asyncio.sleep(MORE_SECONDS)
        await until_ready(frozen, other)

    assert [await each.stop() for each in (frozen, other)] == [0, 0]
