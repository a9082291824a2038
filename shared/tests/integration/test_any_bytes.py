"""Whatever another program writes to a topic, a worker gives each record one end and goes on."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.record.memory_records import MemoryRecords

from local_stack.testing import throwaway_kafka
from shared.messaging import reading, topics
from shared.messaging.records import IncomingRecord
from shared.messaging.wire import OutgoingRecord
from shared.runtime.brokers import Brokers
from shared.runtime.identifiers import new_id
from test_support.counter.counted_records import CREATE_EFFECTS, effects_of, record
from test_support.counter.counter import TOPIC
from test_support.counter.letters import read_letters
from test_support.counter.workers import worker
from test_support.raw_records import NOT_UTF_8, RawHeader, many_headers, raw, write_each
from test_support.waits import HANGS_AFTER_SECONDS

PARTITION = 1
LARGE = b"0" * (3 * 1024 * 1024)
"""More than a topic takes, unless it is compressed."""

PLACE = (TOPIC, PARTITION)


def counted_with(*more: RawHeader, **changed: bytes | None) -> OutgoingRecord:
    """A message as it should be, with other headers first; or without its key or value."""
    whole = replace(record(new_id(), 1), **changed)  # type: ignore[arg-type]
    own = [(name.encode(), value) for name, value in whole.headers]
    return raw(*PLACE, *more, *own, key=whole.key, value=whole.value)


def counter_of(written: OutgoingRecord) -> UUID:
    return UUID((written.key or b"").decode())


BAD = {
    "a name that is not UTF-8": raw(*PLACE, (NOT_UTF_8, b"x")),
    "a name that is half of a character": raw(*PLACE, (b"\xe2\x82", b"x"), (b"ce_id", b"x")),
    "nothing at all": raw(*PLACE, key=None, value=None),
    "a tombstone": counted_with(value=None),
    "no key": counted_with(key=None),
    "a key that is not UTF-8": counted_with(key=NOT_UTF_8),
    "an empty name": raw(*PLACE, (b"", b"")),
    "a header without a value": raw(*PLACE, (b"ce_id", None)),
    "an id that is not UTF-8": counted_with((b"ce_id", NOT_UTF_8)),
    "a thousand headers": raw(*PLACE, *many_headers(1_000)),
    "a value of zeros": raw(*PLACE, value=bytes(1_000)),
}

GOOD = {
    "another name is not UTF-8": counted_with((NOT_UTF_8, b"x")),
    "another value is not UTF-8": counted_with((b"other", NOT_UTF_8)),
    "another header has no value": counted_with((b"other", None)),
    "a trace that is none": counted_with((b"traceparent", NOT_UTF_8)),
}


@pytest.fixture(scope="module")
def kafka_servers() -> Iterator[str]:
    """A broker of these tests alone: others do not expect such records."""
    with throwaway_kafka() as servers:
        asyncio.run(topics.create(Brokers(servers)))
        yield servers


async def until_applied(pool: asyncpg.Pool, *counters: UUID) -> None:
    async with asyncio.timeout(HANGS_AFTER_SECONDS):
        for counter in counters:
            while await effects_of(pool, counter) != [1]:
                await asyncio.sleep(0.05)


async def test_each_record_has_one_end_and_the_next_one_is_taken(
    pool: asyncpg.Pool, database: str, kafka_servers: str, tmp_path: Path
) -> None:
    await pool.execute(CREATE_EFFECTS)
    last = counted_with()
    bad, good = list(BAD.values()), list(GOOD.values())
    offsets = await write_each(kafka_servers, bad)
    await write_each(kafka_servers, [*good, last])

    async with worker(database, kafka_servers, tmp_path):
        await until_applied(pool, *map(counter_of, [*good, last]))

    letters = [each for each in await read_letters(kafka_servers) if each.origin[1] in offsets]
    assert sorted(each.origin for each in letters) == [(PARTITION, each) for each in offsets]
    by_offset = {each.origin[1]: each for each in letters}
    for offset, written in zip(offsets, bad, strict=True):
        letter = by_offset[offset]
        assert (letter.key, letter.value) == (written.key, written.value)
    assert b"no header" in by_offset[offsets[0]].headers["dlq_reason"]
    assert by_offset[offsets[0]].headers["\\xff\\xfe"] == b"x"


async def test_without_another_class_for_fetches_a_reader_stops_at_such_a_name(
    kafka_servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control."""
    place = TopicPartition(TOPIC, PARTITION)
    [offset] = await write_each(kafka_servers, [BAD["a name that is not UTF-8"]])
    monkeypatch.setattr(fetcher, "MemoryRecords", MemoryRecords)
    async with AIOKafkaConsumer(bootstrap_servers=kafka_servers) as client:
        client.assign([place])
        client.seek(place, offset)

        with pytest.raises(UnicodeDecodeError):
            await asyncio.wait_for(client.getone(place), HANGS_AFTER_SECONDS)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_records_are_read_in_any_compression_and_size(
    pool: asyncpg.Pool, database: str, kafka_servers: str, tmp_path: Path, codec: str
) -> None:
    """What is too large for a letter stays where it is: the letter names the place."""
    await pool.execute(CREATE_EFFECTS)
    counter, sick = new_id(), new_id()
    good, bad, next_ = record(counter, 1), record(sick, 1, value=LARGE), record(sick, 2)
    async with AIOKafkaProducer(
        bootstrap_servers=kafka_servers, compression_type=codec, max_request_size=2 * len(LARGE)
    ) as producer:
        offsets = [await send(producer, each) for each in (bad, next_, good)]

    async with worker(database, kafka_servers, tmp_path):
        await until_applied(pool, counter)

    [letter] = [
        each for each in await read_letters(kafka_servers) if each.origin == (PARTITION, offsets[0])
    ]
    assert int(letter.headers["dlq_bytes"]) > len(LARGE)
    assert (letter.key, letter.value) == (None, None)
    waiting = await pool.fetch(
        "SELECT version, length(value) AS size FROM parked_messages WHERE stream_id = $1", sick
    )
    assert {row["version"]: row["size"] for row in waiting} == {
        1: len(LARGE),
        2: len(next_.value or b""),
    }


async def send(producer: AIOKafkaProducer, sent: IncomingRecord) -> int:
    place = await producer.send_and_wait(
        TOPIC, sent.value, sent.key, partition=PARTITION, headers=list(sent.headers)
    )
    return int(place.offset)


async def test_a_record_of_an_aborted_transaction_was_never_sent(
    pool: asyncpg.Pool, database: str, kafka_servers: str, tmp_path: Path
) -> None:
    await pool.execute(CREATE_EFFECTS)
    committed, aborted, later = new_id(), new_id(), new_id()
    async with AIOKafkaProducer(
        bootstrap_servers=kafka_servers, transactional_id=str(new_id())
    ) as producer:
        for counter in (committed, aborted):
            await producer.begin_transaction()
            await send(producer, record(counter, 1))
            if counter == aborted:
                offset = await send(producer, record(new_id(), 1, value=b"{}"))
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
    async with AIOKafkaProducer(bootstrap_servers=kafka_servers) as producer:
        await send(producer, record(later, 1))

    async with worker(database, kafka_servers, tmp_path):
        await until_applied(pool, committed, later)

    assert await effects_of(pool, aborted) == []
    assert (PARTITION, offset) not in [each.origin for each in await read_letters(kafka_servers)]
    assert await read_from(AIOKafkaConsumer(bootstrap_servers=kafka_servers), offset) == offset
    assert await read_from(reading.create_client(Brokers(kafka_servers)), offset) > offset


async def read_from(client: AIOKafkaConsumer, offset: int) -> int:
    """The offset of the first record that a client reads; without the isolation it is aborted."""
    place = TopicPartition(TOPIC, PARTITION)
    async with client, asyncio.timeout(HANGS_AFTER_SECONDS):
        client.assign([place])
        client.seek(place, offset)
        return int((await client.getone(place)).offset)
