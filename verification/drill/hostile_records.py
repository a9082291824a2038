"""Records that no service writes, and the one end that each reader has to give each of them.

A record that is no message, or one of a type that is unknown, becomes a dead letter. One whose data
are wrong is a dead letter, too, and its stream waits; one that comes after a gap waits. The job
looks only at the types that it counts. What was written in an aborted transaction was never sent.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import NamedTuple

import asyncpg
from aiokafka import AIOKafkaProducer, TopicPartition

from analytics_spark.job import topics as counted
from analytics_spark.job.dead_letters import READER as JOB
from shared.inbox import dead_letters
from shared.messaging import kafka, messages
from shared.messaging.topics import TOPICS
from shared.messaging.wire import OutgoingRecord
from shared.runtime import telemetry
from shared.runtime.brokers import Brokers
from shared.runtime.declarations import load_declarations
from shared.runtime.identifiers import new_id
from test_support.raw_records import NOT_UTF_8, RawHeader, many_headers, pack
from test_support.topic_records import read_to_end

GROUP_RECORDS_MAX = 4
"""Written together."""
LARGE_BYTES = 3 * 1024 * 1024
"""More than a topic takes, unless it is compressed."""
CODECS = ("gzip", "snappy", "lz4", "zstd")
ABORTED_SHARE = 0.5
"""Of the transactions."""
DEAD_LETTER_HEADERS_MAX = 5

PARKED = "SELECT topic, partition, record_offset FROM parked_messages WHERE consumer = $1"

WORKERS = load_declarations().names_of("worker")
COUNTED = {each.name: each.types for each in (counted.USERS, counted.ITEMS, counted.ORDERS)}

USED_BY: Mapping[str, tuple[str, frozenset[str]]] = {
    "users.v1": ("credit-reserved", frozenset({"users-worker", "orders-worker"})),
    "items.v1": ("item-listed", frozenset({"orders-worker", JOB})),
    "orders.v1": ("order-placed", frozenset({"users-worker", "orders-worker"})),
}
"""A type of each topic, and its readers that read the data of that type."""

NEEDED = (
    messages.ID,
    messages.TYPE,
    messages.SCHEMA_VERSION,
    messages.STREAM_ID,
    messages.STREAM_VERSION,
    messages.CORRELATION_ID,
    messages.TIME,
)
"""The headers without which a record is no message."""

GARBAGE = (
    b"",
    b"\0",
    b" ",
    b"-1",
    b"1e9",
    b"9" * 30,
    "١".encode(),
    NOT_UTF_8,
    b"\xed\xa0\x80",
    b"\r\nx: y",
    b"'; DROP TABLE events; --",
    b"x" * 5_000,
)

DOCUMENTS = (
    *GARBAGE,
    b"{}",
    b"[]",
    b"null",
    b"NaN",
    b"\xef\xbb\xbf{}",
    b'{"a":1}{"a":1}',
    b'{"order_id":null,"user_id":null,"item_id":null}',
    b'{"user_id":"\\u0000","item_id":"\\u0000","order_id":"\\ud800"}',
    b'{"lines":' + b"9" * 5_000 + b"}",
    b"[" * 50_000,
    b'{"a":' * 20_000,
)
"""None is the data of any event."""

AGES_MILLISECONDS = (0, 60_000, 86_400_000, 40 * 365 * 86_400_000, -3_600_000)


class Place(NamedTuple):
    topic: str
    partition: int
    offset: int


class End(StrEnum):
    LETTER = "dead letter"
    PARKED = "parked"


EndsByReader = Mapping[str, frozenset[End]]

Ends = Counter[tuple[str, Place, End]]
"""How often a reader has given a record an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """A record, and its ends by reader."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[RawHeader]
    age_milliseconds: int
    ends: EndsByReader

    @property
    def has_text_names(self) -> bool:
        return all(is_utf_8(name) for name, _ in self.headers)


def is_utf_8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


class Author:
    """Makes records for one topic."""

    def __init__(self, chance: Random, topic: str) -> None:
        self.topic = topic
        self._chance = chance
        self._workers = set(TOPICS[topic].readers).intersection(WORKERS)
        self._makers = (self._no_message, self._unknown_type, self._wrong_data, self._gap)

    def make_group(self) -> Sequence[Hostile]:
        """Records for one partition, in their order."""
        count = self._chance.randint(1, GROUP_RECORDS_MAX)
        return [each for _ in range(count) for each in self._chance.choice(self._makers)()]

    def _no_message(self) -> Iterator[Hostile]:
        right = self._message(self._chance.choice(sorted(COUNTED[self.topic])), 1, 0)
        headers = dict(right.headers)
        key, value = right.key, right.value
        match self._chance.randrange(6):
            case 0:
                del headers[self._chance.choice(NEEDED).encode()]
            case 1:
                headers[self._chance.choice(NEEDED).encode()] = self._chance.choice(GARBAGE)
            case 2:
                headers[self._chance.choice(NEEDED).encode()] = None
            case 3:
                headers = dict(self._noise())
            case 4:
                key = self._chance.choice((None, NOT_UTF_8))
            case _:
                value = None
        ends = {**self._ends_of_workers(End.LETTER), **self._ends_of_job(headers)}
        yield replace(right, key=key, value=value, headers=[*headers.items()], ends=ends)

    def _unknown_type(self) -> Iterator[Hostile]:
        made = self._message(f"unheard-{self._chance.randrange(10)}", 1, 0)
        yield replace(made, ends=self._ends_of_workers(End.LETTER))

    def _wrong_data(self) -> Iterator[Hostile]:
        """And the record after it, which waits."""
        type_, readers = USED_BY[self.topic]
        first = self._message(type_, 1, 0)
        second = replace(first, headers=self._headers(type_, 2, 1, first.headers))
        ends = {each: frozenset({End.LETTER, End.PARKED}) for each in readers}
        following = {each: frozenset({End.PARKED}) for each in readers}
        if JOB in readers:
            ends[JOB] = following[JOB] = frozenset({End.LETTER})
        yield replace(first, ends=ends)
        yield replace(second, ends=following)

    def _gap(self) -> Iterator[Hostile]:
        made = self._message(USED_BY[self.topic][0], 7, 6)
        ends = {**self._ends_of_workers(End.PARKED), **self._ends_of_job(dict(made.headers))}
        yield replace(made, ends=ends)

    def _ends_of_workers(self, *ends: End) -> EndsByReader:
        return {each: frozenset(ends) for each in self._workers}

    def _ends_of_job(self, headers: Mapping[bytes, bytes | None]) -> EndsByReader:
        type_ = headers.get(messages.TYPE.encode())
        is_counted = type_ is None or type_ in {each.encode() for each in COUNTED[self.topic]}
        return {JOB: frozenset({End.LETTER})} if is_counted else {}

    def _message(self, type_: str, version: int, previous: int) -> Hostile:
        """A message in all but its data, of a stream of its own."""
        return Hostile(
            key=str(new_id()).encode(),
            value=self._chance.choice((*DOCUMENTS, self._chance.randbytes(100))),
            headers=self._headers(type_, version, previous),
            age_milliseconds=self._chance.choice(AGES_MILLISECONDS),
            ends={},
        )

    def _headers(
        self, type_: str, version: int, previous: int, earlier: Sequence[RawHeader] = ()
    ) -> Sequence[RawHeader]:
        stream = dict(earlier).get(messages.STREAM_ID.encode()) or str(new_id()).encode()
        right = {
            messages.ID: str(new_id()).encode(),
            messages.TYPE: type_.encode(),
            messages.SCHEMA_VERSION: b"1",
            messages.STREAM_ID: stream,
            messages.STREAM_VERSION: b"%d" % version,
            messages.PREVIOUS_VERSION: b"%d" % previous,
            messages.CORRELATION_ID: str(new_id()).encode(),
            messages.TIME: b"2026-01-01T00:00:00Z",
        }
        own = [(name.encode(), value) for name, value in right.items()]
        return [*own, *(self._noise() if self._chance.random() < 0.5 else ())]

    def _noise(self) -> Sequence[RawHeader]:
        """Headers that no reader needs."""
        if self._chance.random() < 0.1:
            return many_headers(1_000)
        names = (b"", NOT_UTF_8, b"x" * 300, telemetry.TRACEPARENT.encode(), b"\0", b"ce_")
        values = (*GARBAGE, None)
        return [(each, self._chance.choice(values)) for each in self._chance.sample(names, 2)]


class Writer:
    """Writes groups of records in one of many ways, and knows the ends that these readers have to
    give them."""

    def __init__(self, servers: str, chance: Random, readers: Collection[str]) -> None:
        self._servers = servers
        self._chance = chance
        self._readers = readers
        self.expected: Ends = Counter()

    async def write(self, topic: str, group: Sequence[Hostile]) -> None:
        """Write a group to one partition."""
        partition = self._chance.randrange(TOPICS[topic].partitions)
        ways = [self._write_raw]
        if all(each.has_text_names for each in group):
            ways.append(self._write_transaction)
            if group[-1].value is not None:
                ways.append(self._write_compressed)
        offsets = await self._chance.choice(ways)(topic, partition, group)
        for offset, each in zip(offsets, group, strict=False):
            place = Place(topic, partition, offset)
            self.expected.update(
                (reader, place, end)
                for reader, ends in each.ends.items()
                for end in ends
                if reader in self._readers
            )

    async def _write_raw(self, topic: str, partition: int, group: Sequence[Hostile]) -> list[int]:
        now = time.time_ns() // 1_000_000
        records = [
            OutgoingRecord(
                topic,
                partition,
                each.key,
                each.value,
                pack(*each.headers),
                now - each.age_milliseconds,
            )
            for each in group
        ]
        producer = kafka.create_producer(Brokers(self._servers), "hostile")
        await producer.start()
        try:
            [batch] = await kafka.publish(producer, records)
        finally:
            await kafka.close(producer)
        return [batch.base_offset + number for number in range(len(group))]

    async def _write_compressed(
        self, topic: str, partition: int, group: Sequence[Hostile]
    ) -> list[int]:
        large = replace(group[-1], value=bytes(LARGE_BYTES))
        async with AIOKafkaProducer(
            bootstrap_servers=self._servers,
            compression_type=self._chance.choice(CODECS),
            max_request_size=2 * LARGE_BYTES,
        ) as producer:
            return await send(producer, topic, partition, [*group[:-1], large])

    async def _write_transaction(
        self, topic: str, partition: int, group: Sequence[Hostile]
    ) -> list[int]:
        async with AIOKafkaProducer(
            bootstrap_servers=self._servers, transactional_id=str(new_id())
        ) as producer:
            await producer.begin_transaction()
            offsets = await send(producer, topic, partition, group)
            if self._chance.random() < ABORTED_SHARE:
                await producer.abort_transaction()
                return []
            await producer.commit_transaction()
        return offsets


async def send(
    producer: AIOKafkaProducer, topic: str, partition: int, group: Sequence[Hostile]
) -> list[int]:
    """Send records one after the other, by the client's own means; their offsets."""
    now = time.time_ns() // 1_000_000
    offsets = []
    for each in group:
        place = await producer.send_and_wait(
            topic,
            each.value,
            each.key,
            partition=partition,
            timestamp_ms=now - each.age_milliseconds,
            headers=[(name.decode(), value) for name, value in each.headers],
        )
        offsets.append(place.offset)
    return offsets


async def read_ends(servers: str, databases: Mapping[str, str]) -> Ends:
    """All ends that records have had until now; `databases` has the DSN of each worker."""
    return await read_letters(servers) + await read_parked(databases)


async def read_letters(servers: str) -> Ends:
    places = {
        TopicPartition(topic.dead_letters_of(reader), number): reader
        for topic in TOPICS.values()
        for reader in topic.readers
        for number in range(topic.partitions)
    }
    return Counter(
        (
            places[TopicPartition(letter.topic, letter.partition)],
            get_origin(letter.headers),
            End.LETTER,
        )
        for letter in await read_to_end(servers, places)
    )


def get_origin(headers: Sequence[messages.ReadHeader]) -> Place:
    """Of a dead letter. Its own headers are the last ones: the record can have had such names."""
    last = headers[-DEAD_LETTER_HEADERS_MAX:]
    own = {name: (value or b"").decode(errors="replace") for name, value in last}
    return Place(
        own[dead_letters.TOPIC], int(own[dead_letters.PARTITION]), int(own[dead_letters.OFFSET])
    )


async def read_parked(databases: Mapping[str, str]) -> Ends:
    found: Ends = Counter()
    for reader, database in databases.items():
        connection = await asyncpg.connect(database)
        try:
            rows = await connection.fetch(PARKED, reader)
        finally:
            await connection.close()
        found.update((reader, Place(*row), End.PARKED) for row in rows)
    return found


def compare(expected: Ends, found: Ends) -> list[str]:
    """A line for each record that has another end than it must have, or has it twice."""
    missing = [f"{name_end(end)} is missing" for end in (expected - found).elements()]
    return [*missing, *(f"{name_end(end)} is too much" for end in (found - expected).elements())]


def name_end(end: tuple[str, Place, End]) -> str:
    reader, (topic, partition, offset), kind = end
    return f"{kind} of {topic}/{partition}/{offset} by {reader}"
