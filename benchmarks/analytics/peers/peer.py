"""What peers have in common: how one is run as a process, and how its answer is read."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aiokafka import ConsumerRecord

from benchmarks import servers
from benchmarks.analytics import counting, process_tree, true_cells
from benchmarks.analytics.true_cells import Cells
from fetching.errors import Failure
from local_stack.stack_spec import StackContext
from shared.messaging import reading
from shared.runtime.brokers import Brokers
from test_support.kafka_admin import admin_client

ANSWER_SECONDS_MAX = 1_800
READ_SECONDS_MAX = 120
READ_MILLISECONDS_MAX = 1_000
"""Until records of the answer are there, for each request."""
POLL_SECONDS = 0.25
MILLISECONDS = 1_000
THREADS = 2
OWN_TOPICS = "peer-"
"""How the names of topics begin that a peer creates for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A program that answers the job's question.

    `command` gets the stack and an empty folder, and these arguments are added: Kafka's address,
    how many threads, how many lines of orders there are, the topic for its cells, a folder for its
    state. It prints each Mark as a line of JSON, and ends when all its cells are in the topic: key
    and value of a record are the fields of CellKey and CellValue, and a key's last record is valid.
    """

    name: str
    command: Callable[[StackContext, Path], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Its progress at a moment: lines of orders, and seconds of CPU time."""

    at: float
    joined: int
    cpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRun:
    """From the start of the process to its end; the last mark is after its last commit."""

    started_at: float
    marks: Sequence[Mark]
    resident_bytes_max: int
    first_at: float
    """When the broker appended its first cell."""
    cells: Cells


async def run(peer: Peer, context: StackContext, lines: int) -> PeerRun:
    """Run it to its end. Raises Failure if it fails, takes too long, or misses a line."""
    async with (
        counting.folder(context) as own,
        servers.topic(context, servers.LOG_APPEND_TIME) as output,
    ):
        command = [
            *peer.command(context, own / "tmp"),
            *(context.address("kafka"), str(THREADS), str(lines), output, str(own / "state")),
        ]
        started_at, resident = time.time(), 0
        async with servers.process(context, command, {}) as running:
            ended = asyncio.create_task(running.wait_until_finished(ANSWER_SECONDS_MAX))
            while not ended.done():
                resident = max(resident, process_tree.resident_bytes(running.pid))
                await asyncio.wait([ended], timeout=POLL_SECONDS)
            await ended
            marks = to_marks(running.words)
        records = await read(context, output)
        await forget(context)
    if not records or not marks or marks[-1].joined != lines:
        raise Failure(f"{peer.name} has written {len(records)} records after {marks[-1:]}")
    return PeerRun(
        started_at=started_at,
        marks=marks,
        resident_bytes_max=resident,
        first_at=min(record.timestamp for record in records) / MILLISECONDS,
        cells=find_last(records),
    )


async def forget(context: StackContext) -> None:
    """Delete the topics that a peer has created for itself, with their disk space."""
    async with admin_client(context.address("kafka")) as client:
        names = await client.list_topics()
        await client.delete_topics([name for name in names if name.startswith(OWN_TOPICS)])


def to_marks(words: str) -> list[Mark]:
    """The marks among the words that a program has printed."""
    return [Mark(**json.loads(line)) for line in words.splitlines() if line.startswith("{")]


async def read(context: StackContext, topic: str) -> list[ConsumerRecord]:
    """All committed records of a topic, those of a partition in their order."""
    ends, found = await servers.ends(context, topic), []
    async with (
        servers.bounded(READ_SECONDS_MAX, "to read a peer's cells"),
        reading.create_client(
            Brokers(context.address("kafka")), auto_offset_reset="earliest"
        ) as consumer,
    ):
        consumer.assign(list(ends))
        while [each for each, end in ends.items() if await consumer.position(each) < end]:
            for records in (await consumer.getmany(timeout_ms=READ_MILLISECONDS_MAX)).values():
                found += records
    return found


def find_last(records: Sequence[ConsumerRecord]) -> Cells:
    """The cells that these records leave; one without a value removes its cell."""
    last = {record.key: record.value for record in records}
    return true_cells.to_cells(
        json.loads(key) | json.loads(value) for key, value in last.items() if value
    )
