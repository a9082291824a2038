"""The broker of the lessons, that of the stack that runs or one of their own, and its topics."""

import asyncio
import io
import json
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    redirect_stdout,
    suppress,
)
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import NoError, TopicAlreadyExistsError, for_code

from lessons.lesson import Record
from local_stack.settings import Settings
from local_stack.testing import throwaway_kafka

T = TypeVar("T")

PREFIX = "lesson."
"""Of all topics of lessons."""
PARTITIONS = REPLICAS = 1
KEPT = {"retention.ms": "-1"}
"""By default a broker removes records with times of 2016 within its first minute."""
REQUEST_MILLISECONDS_MAX = 60_000
READ_MILLISECONDS_MAX = 200
FETCH_WAIT_MILLISECONDS_MAX = 10
"""How long the broker holds a fetch back until there is a record. It answers nothing else on the
connection meanwhile: not what the end of a topic is, which the runner asks for after each step."""
CONNECT_SECONDS_MAX = 1.0
REMOVE_SECONDS_MAX = 10.0


@contextmanager
def find_broker() -> Iterator[str]:
    """The address of the running stack's broker, or of one that is gone afterwards."""
    running = find_running_broker()
    if running is not None:
        yield running
        return
    with quietly(throwaway_kafka()) as own:
        yield own


@contextmanager
def quietly(server: AbstractContextManager[T]) -> Iterator[T]:
    """A server of this process alone, without what is printed at its start and at its end."""
    with ExitStack() as stack:
        with redirect_stdout(io.StringIO()):
            started = stack.enter_context(server)
        try:
            yield started
        finally:
            with redirect_stdout(io.StringIO()):
                stack.close()


def find_running_broker() -> str | None:
    """None if no stack runs, or one whose broker demands a login, as in a cluster."""
    settings = Settings()
    if settings.way == "cluster":
        return None
    try:
        address = str(json.loads((settings.run_dir / "addresses.json").read_text())["kafka"])
        host, _, port = address.rpartition(":")
        socket.create_connection((host, int(port)), CONNECT_SECONDS_MAX).close()
    except (OSError, KeyError, ValueError):
        return None
    return address


@asynccontextmanager
async def open_topics(servers: str) -> AsyncIterator["Topics"]:
    """Clients of a broker, to create, write and read topics."""
    admin = AIOKafkaAdminClient(
        bootstrap_servers=servers, request_timeout_ms=REQUEST_MILLISECONDS_MAX
    )
    await admin.start()
    try:
        async with (
            AIOKafkaProducer(
                bootstrap_servers=servers, acks="all", enable_idempotence=True
            ) as producer,
            AIOKafkaConsumer(bootstrap_servers=servers) as consumer,
        ):
            yield Topics(servers, admin, producer, consumer)
    finally:
        await admin.close()


class Topics:
    """Topics of lessons: created, written and read."""

    def __init__(
        self,
        servers: str,
        admin: AIOKafkaAdminClient,
        producer: AIOKafkaProducer,
        consumer: AIOKafkaConsumer,
    ) -> None:
        self.servers = servers
        self.admin = admin
        self.producer = producer
        self._consumer = consumer

    async def create(self, names: Iterable[str], *, may_exist: bool = False) -> None:
        """Create topics of one partition each. Raises KafkaError."""
        topics = [NewTopic(name, PARTITIONS, REPLICAS, topic_configs=KEPT) for name in names]
        response = await self.admin.create_topics(topics)
        check_errors(
            response.topic_errors, TopicAlreadyExistsError.errno if may_exist else NoError.errno
        )

    @asynccontextmanager
    async def remove_around(self, prefix: str) -> AsyncIterator[str]:
        """Remove all topics that begin so, at first those of a run that was killed."""
        await self.remove(prefix)
        try:
            yield prefix
        finally:
            # Not answered when all tasks of the loop are cancelled. The next run removes them.
            with suppress(TimeoutError):
                await asyncio.wait_for(self.remove(prefix), REMOVE_SECONDS_MAX)

    async def remove(self, prefix: str) -> None:
        if names := await self.find(prefix):
            await self.admin.delete_topics(names)

    async def find(self, prefix: str) -> list[str]:
        """The topics that begin so."""
        return [name for name in await self.admin.list_topics() if name.startswith(prefix)]

    async def publish(self, prefix: str, records: Iterable[Record]) -> None:
        """Send records, each to the topic of its name behind the prefix; returns when all of them
        are stored."""
        sent = [
            await self.producer.send(
                f"{prefix}{record.topic}",
                to_bytes(record.value),
                key=None if record.key is None else record.key.encode(),
                timestamp_ms=int(record.time.timestamp() * 1000),
                headers=[(name, text.encode()) for name, text in record.headers.items()],
            )
            for record in records
        ]
        await asyncio.gather(*sent)

    async def get_ends(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict(await self._consumer.end_offsets(places))

    @asynccontextmanager
    async def open_reader(
        self, topic: str, isolation_level: str = "read_uncommitted"
    ) -> AsyncIterator["Reader"]:
        """A reader of a topic of one partition, from its beginning."""
        place = TopicPartition(topic, 0)
        async with AIOKafkaConsumer(
            bootstrap_servers=self.servers,
            auto_offset_reset="earliest",
            isolation_level=isolation_level,
            fetch_max_wait_ms=FETCH_WAIT_MILLISECONDS_MAX,
        ) as consumer:
            consumer.assign([place])
            yield Reader(consumer, place, self)


class Reader:
    """Reads a topic, each record once."""

    def __init__(self, consumer: AIOKafkaConsumer, place: TopicPartition, topics: Topics) -> None:
        self._consumer = consumer
        self._place = place
        self._topics = topics

    async def read_to_end(self) -> list[Any]:
        """The values of the records that the topic has now, without those that were read before."""
        # Not of this consumer: where it reads committed records only, a transaction whose commit is
        # under way has no end yet.
        end = (await self._topics.get_ends([self._place]))[self._place]
        values: list[Any] = []
        while await self._consumer.position(self._place) < end:
            for batch in (await self._consumer.getmany(timeout_ms=READ_MILLISECONDS_MAX)).values():
                values += [json.loads(record.value) for record in batch]
        return values


def to_bytes(value: object) -> bytes | None:
    """A text as it is, None as a tombstone, anything else as JSON."""
    if value is None:
        return None
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def check_errors(errors: Iterable[tuple[Any, ...]], expected: int) -> None:
    """Raises the KafkaError of the first topic that was refused for another reason."""
    for topic, code, *_ in errors:
        if code not in (NoError.errno, expected):
            raise for_code(code)(topic)
