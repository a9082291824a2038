"""What a member of a consumer group takes and commits around a rebalance."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord

from shared.inbox.consumer import Consumer
from shared.inbox.group_reader import GroupReader
from shared.messaging.records import IncomingRecord
from shared.runtime.brokers import Brokers

PLACE = TopicPartition("users.v1", 0)
BROKERS = Brokers("127.0.0.1:9")


def record(offset: int) -> ConsumerRecord:
    return ConsumerRecord(*PLACE, offset, 0, 0, b"", b"", None, 0, 0, ())


class Client:
    """Stands for aiokafka's client: `arrives` is what it has, `committed_to` what Kafka has."""

    def __init__(self, *arrives: int, committed_to: int = 0) -> None:
        self.arrives = [record(offset) for offset in arrives]
        self.committed_to = committed_to
        self.commits: list[int] = []

    async def getmany(self, **_: Any) -> dict[TopicPartition, list[ConsumerRecord]]:
        arrived, self.arrives = self.arrives, []
        return {PLACE: arrived} if arrived else {}

    async def committed(self, _: TopicPartition) -> int:
        return self.committed_to

    async def commit(self, offsets: dict[TopicPartition, int]) -> None:
        self.commits.append(offsets[PLACE])


class Taken:
    """Stands for a consumer; a batch takes until `may_end`."""

    name, topics = "users-worker", ("users.v1",)

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.may_end = asyncio.Event()

    async def take(self, records: Sequence[IncomingRecord]) -> None:
        self.offsets += [each.offset for each in records]
        await self.may_end.wait()


def reader_of(client: Client, taken: Taken) -> GroupReader:
    reader = GroupReader(cast(Consumer, taken), BROKERS)
    reader._client = client
    return reader


async def test_what_was_taken_is_committed() -> None:
    client, taken = Client(4, 5), Taken()
    taken.may_end.set()

    await reader_of(client, taken)._take_arrived()

    assert taken.offsets == [4, 5]
    assert client.commits == [6]


async def test_nothing_is_committed_further_back() -> None:
    """As after the log was lost, and read from its beginning again."""
    client, taken = Client(0, 1, committed_to=9), Taken()
    taken.may_end.set()

    await reader_of(client, taken)._take_arrived()

    assert taken.offsets == [0, 1]
    assert client.commits == []


async def test_a_rebalance_waits_for_the_batch_in_hand_and_its_commit() -> None:
    client, taken = Client(4), Taken()
    reader = reader_of(client, taken)
    taking = asyncio.create_task(reader._take_arrived())
    await asyncio.sleep(0)
    revoking = asyncio.create_task(reader.on_partitions_revoked([PLACE]))
    await asyncio.sleep(0.01)
    assert not revoking.done()

    taken.may_end.set()
    await asyncio.gather(taking, revoking)

    assert client.commits == [5]
    assert not reader.is_member


async def test_the_offsets_of_a_batch_that_outlasts_a_rebalance_are_not_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They may be those of another member now."""
    monkeypatch.setattr("shared.inbox.group_reader.LET_GO_SECONDS_MAX", 0.01)
    client, taken = Client(4), Taken()
    reader = reader_of(client, taken)
    taking = asyncio.create_task(reader._take_arrived())
    await asyncio.sleep(0)

    await reader.on_partitions_revoked([PLACE])
    reader.on_partitions_assigned([PLACE])
    taken.may_end.set()
    await taking

    assert taken.offsets == [4]
    assert client.commits == []
    assert reader.is_member


async def test_what_was_read_before_a_rebalance_is_not_taken_after_it() -> None:
    client, taken = Client(4), Taken()
    taken.may_end.set()
    reader = reader_of(client, taken)
    async with reader._in_hand:
        taking = asyncio.create_task(reader._take_arrived())
        await asyncio.sleep(0)
        reader._assignments += 1

    await taking

    assert taken.offsets == []
