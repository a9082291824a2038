"""The Faust program as a process of its own, and how far it has read."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from analytics_faust.copartitions import LINES_BY_ITEM, PURCHASES_BY_HOUR
from analytics_faust.worker import NAME
from local_stack import issuer, ports
from local_stack.run_folder import RunFolder
from local_stack.testing import bearer
from shared.messaging.topics import INTERNAL_TOPICS, TOPICS
from test_support.analytics.histories import Event
from test_support.analytics.published import publish
from test_support.analytics.still_histories import Totals
from test_support.waits import HANGS_AFTER_SECONDS

POLL_SECONDS = 0.2

PARTITIONS = {topic.name: topic.partitions for topic in TOPICS.values()} | {
    name: INTERNAL_TOPICS[name].partitions for name in (LINES_BY_ITEM, PURCHASES_BY_HOUR)
}
READ = [
    TopicPartition(topic, number)
    for topic, partitions in PARTITIONS.items()
    for number in range(partitions)
]
"""All that the program reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """`python -m analytics_faust worker`."""

    process: "subprocess.Popen[bytes]"
    url: str
    headers: Mapping[str, str]

    def get(self, path: str) -> Any:
        answer = httpx.get(self.url + path, headers=dict(self.headers), timeout=HANGS_AFTER_SECONDS)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def is_ready(self) -> bool:
        assert self.process.poll() is None, "the worker has ended"
        try:
            return httpx.get(f"{self.url}/health/ready", timeout=HANGS_AFTER_SECONDS).is_success
        except httpx.TransportError:
            return False

    def wait_until_ready(self) -> "Worker":
        deadline = time.monotonic() + HANGS_AFTER_SECONDS
        while not self.is_ready():
            assert time.monotonic() < deadline, "the worker is not ready"
            time.sleep(POLL_SECONDS)
        return self

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(HANGS_AFTER_SECONDS)

    def kill(self) -> None:
        """Like a power cut."""
        self.process.kill()
        self.process.wait()


def hour_at(worker: Worker, hour: datetime) -> Totals:
    """Local buyers, purchases, quantity and cents of an hour."""
    answer = worker.get(f"/v1/hours/{hour.isoformat().replace('+00:00', 'Z')}")
    cents = int(answer["amount"].replace(".", ""))
    return answer["local_buyers"], answer["purchases"], answer["quantity"], cents


WITH_BARRIER = ("-m", "analytics_faust", "worker")
WITHOUT_BARRIER = (str(Path(__file__).with_name("without_join_barrier.py")),)

Start = Callable[..., Worker]


def start(
    kafka: str, folder: Path, issuing: RunFolder, program: Sequence[str] = WITH_BARRIER
) -> Worker:
    port = ports.find_free()
    environment = os.environ | {
        "ENVIRONMENT": "development",
        "KAFKA_BOOTSTRAP_SERVERS": kafka,
        "HTTP_PORT": str(port),
        "FAUST_DIR": str(folder),
        **issuer.variables(issuing),
    }
    process = subprocess.Popen([sys.executable, *program], env=environment)
    return Worker(
        process=process, url=f"http://127.0.0.1:{port}", headers=bearer(issuing, "analyst")
    )


class Kafka:
    """Clients of the broker, for tests."""

    def __init__(
        self, producer: AIOKafkaProducer, admin: AIOKafkaAdminClient, consumer: AIOKafkaConsumer
    ) -> None:
        self.producer = producer
        self._admin = admin
        self._consumer = consumer

    async def publish(self, *events: Event) -> None:
        await publish(self.producer, events)

    async def count_records(self, topic: str, partitions: int) -> int:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        return sum((await self._consumer.end_offsets(places)).values())

    async def wait_until_written(self, topic: str, partitions: int, records: int) -> None:
        """Wait until a topic has so many records, with those that end transactions."""
        deadline = time.monotonic() + HANGS_AFTER_SECONDS
        while (count := await self.count_records(topic, partitions)) < records:
            assert time.monotonic() < deadline, f"{topic} has {count} of {records} records"
            await asyncio.sleep(POLL_SECONDS)

    async def wait_until_settled(self) -> None:
        """Wait until the program has read all records."""
        deadline = time.monotonic() + HANGS_AFTER_SECONDS
        while unread := await self._find_unread():
            assert time.monotonic() < deadline, f"the program does not read to the end: {unread}"
            await asyncio.sleep(POLL_SECONDS)

    async def _find_unread(self) -> Mapping[TopicPartition, int]:
        """The records left, by partition: what a step has sent was sent before it committed."""
        committed = await self._admin.list_consumer_group_offsets(NAME)
        ends = await self._consumer.end_offsets(READ)
        done = {place: committed[place].offset for place in READ if place in committed}
        left = {place: ends[place] - max(done.get(place, 0), 0) for place in READ}
        return {place: number for place, number in left.items() if number}
