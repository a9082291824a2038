"""The broker of the lessons, that of the stack that runs or one of their own, and its topics."""

import asyncio
import io
import json
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    redirect_stdout,
)
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import for_code

from lessons.lesson import Record
from local_stack.settings import Settings
from local_stack.testing import throwaway_kafka

T = TypeVar("T")

PREFIX = "lesson."
"""Of all topics of lessons."""
REPLICAS = 1
KEPT = {"retention.ms": "-1"}
"""By default a broker removes records with times of 2016 within its first minute."""
REQUEST_MILLISECONDS_MAX = 60_000
READ_MILLISECONDS_MAX = 200
CONNECT_SECONDS_MAX = 1.0


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
    folder = Settings().run_dir
    try:
        address = str(json.loads((folder / "addresses.json").read_text())["kafka"])
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
    producer = AIOKafkaProducer(bootstrap_servers=servers, acks="all", enable_idempotence=True)
    await admin.start()
    await producer.start()
    try:
        yield Topics(servers, admin, producer)
    finally:
        await producer.stop()
        await admin.close()


class Topics:
    """Topics of one lesson: created, written and read."""

    def __init__(
        self, servers: str, admin: AIOKafkaAdminClient, producer: AIOKafkaProducer
    ) -> None:
        self.servers = servers
        self.admin = admin
        self.producer = producer

    async def create(self, names: Mapping[str, int]) -> None:
        topics = [
            NewTopic(name, partitions, REPLICAS, topic_configs=KEPT)
            for name, partitions in names.items()
        ]
        response = await self.admin.create_topics(topics)
        check_errors(response.topic_errors)

    async def remove(self, prefix: str) -> None:
        """Remove all topics that begin so."""
        names = [name for name in await self.admin.list_topics() if name.startswith(prefix)]
        if names:
            await self.admin.delete_topics(names)

    async def publish(self, prefix: str, records: Iterable[Record]) -> None:
        """Send records, each to the topic of its name behind the prefix; returns when all of them
        are stored."""
        sent = [
            await self.producer.send(
                f"{prefix}{record.topic}",
                to_bytes(record.value),
                key=None if record.key is None else record.key.encode(),
                timestamp_ms=int(record.time.timestamp() * 1000),
            )
            for record in records
        ]
        await asyncio.gather(*sent)

    async def get_ends(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        async with AIOKafkaConsumer(bootstrap_servers=self.servers) as consumer:
            return dict(await consumer.end_offsets(places))

    async def read_all(self, topic: str) -> list[Any]:
        """The values of the records that a topic of one partition has now, in their order."""
        place = TopicPartition(topic, 0)
        async with AIOKafkaConsumer(bootstrap_servers=self.servers) as consumer:
            consumer.assign([place])
            await consumer.seek_to_beginning(place)
            end = (await consumer.end_offsets([place]))[place]
            values = []
            while await consumer.position(place) < end:
                for batch in (await consumer.getmany(timeout_ms=READ_MILLISECONDS_MAX)).values():
                    values += [json.loads(record.value) for record in batch]
            return values


def to_bytes(value: object) -> bytes | None:
    """A text as it is, None as a tombstone, anything else as JSON."""
    if value is None or isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def check_errors(errors: Iterable[tuple[Any, ...]]) -> None:
    """Raises the KafkaError of the first topic that was refused."""
    for topic, code, *_ in errors:
        if code:
            raise for_code(code)(topic)
