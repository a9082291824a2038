"""A broker of the program's own, and the program as a process."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient

from local_stack.run_folder import RunFolder
from local_stack.testing import throwaway_kafka
from shared.messaging import topics
from shared.runtime.brokers import Brokers
from test_support.analytics import running_worker
from test_support.analytics.published import Elsewhere
from test_support.analytics.running_worker import WITH_BARRIER, Kafka, Start, Worker

DAYS_APART = 7


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    """Other tests leave records in the topics that they share."""
    with throwaway_kafka() as servers:
        asyncio.run(topics.create(Brokers(servers)))
        yield servers


@pytest.fixture
async def kafka(broker: str) -> AsyncIterator[Kafka]:
    producer = AIOKafkaProducer(bootstrap_servers=broker)
    admin = AIOKafkaAdminClient(bootstrap_servers=broker)
    consumer = AIOKafkaConsumer(bootstrap_servers=broker)
    for client in (producer, admin, consumer):
        await client.start()
    yield Kafka(producer, admin, consumer)
    await producer.stop()
    await admin.close()
    await consumer.stop()


@pytest.fixture
def start(broker: str, issuing: RunFolder) -> Iterator[Start]:
    """Starts a worker with its tables in a folder."""
    started: list[Worker] = []

    def start(folder: Path, program: Sequence[str] = WITH_BARRIER) -> Worker:
        started.append(running_worker.start(broker, folder, issuing, program))
        return started[-1]

    yield start
    for worker in started:
        if worker.process.poll() is None:
            worker.stop()


@pytest.fixture(scope="session")
def days() -> Iterator[int]:
    return iter(range(DAYS_APART, 1 << 16, DAYS_APART))


@pytest.fixture
def elsewhere(days: Iterator[int]) -> Elsewhere:
    """A day and users of this test alone."""
    return Elsewhere.on(next(days))
