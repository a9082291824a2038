"""All records that have arrived are one batch, and only what was taken is committed."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import pytest
from aiokafka import ConsumerRecord
from faust.types import TP

from shared.inbox import faust_transport
from shared.inbox.faust_transport import App, Consumer, Transport

FIRST, SECOND = TP("topic", 0), TP("topic", 1)


class Kafka:
    """What a consumer finds there, and what it commits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches: list[Sequence[ConsumerRecord]] = []
        self.arrived: Mapping[TP, Sequence[ConsumerRecord]] = {}
        self.active = {FIRST, SECOND}
        self.sought = 0
        self.committed: list[Mapping[TP, int]] = []
        self.app = SimpleNamespace(take=self._take, consumer_generation_id=1)
        self.consumer = object.__new__(Consumer)
        self.consumer._taken = {}
        self.consumer._committed_offset = defaultdict(lambda: None)
        self.consumer.flow_active = True
        for name, stand_in in {
            "app": self.app,
            "_wait_next_records": self._wait,
            "perform_seek": self._seek,
            "_commit_offsets": self._commit,
        }.items():
            monkeypatch.setattr(self.consumer, name, stand_in, raising=False)
        monkeypatch.setattr(faust_transport, "BATCH_PERIOD_SECONDS", 0.0)

    async def _take(self, records: Sequence[ConsumerRecord]) -> None:
        self.batches.append(records)

    async def _wait(self, timeout: float) -> tuple[Mapping[TP, Sequence[ConsumerRecord]], set[TP]]:
        return self.arrived, self.active

    async def _seek(self) -> None:
        self.sought += 1

    async def _commit(self, offsets: Mapping[TP, int], start_new_transaction: bool) -> bool:
        self.committed.append(offsets)
        return True


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    return Kafka(monkeypatch)


def create_record(tp: TP, offset: int) -> ConsumerRecord:
    return ConsumerRecord(tp.topic, tp.partition, offset, 0, 0, b"k", b"v", None, 1, 1, ())


async def test_all_that_arrived_is_one_batch_and_is_committed_once(kafka: Kafka) -> None:
    records = [create_record(FIRST, 7), create_record(FIRST, 9), create_record(SECOND, 3)]
    kafka.arrived = {FIRST: records[:2], SECOND: records[2:]}

    await kafka.consumer._take_arrived()
    await kafka.consumer.force_commit()

    assert kafka.batches == [records]
    assert kafka.committed == [{FIRST: 10, SECOND: 4}]
    assert not await kafka.consumer.force_commit()


async def test_a_batch_that_failed_is_not_committed(kafka: Kafka) -> None:
    async def fail(records: Sequence[ConsumerRecord]) -> None:
        raise RuntimeError

    kafka.app.take = fail
    kafka.arrived = {FIRST: [create_record(FIRST, 7)]}

    with pytest.raises(RuntimeError):
        await kafka.consumer._take_arrived()

    assert not await kafka.consumer.force_commit()


async def test_a_log_that_has_become_shorter_does_not_move_what_is_committed_back(
    kafka: Kafka,
) -> None:
    kafka.consumer._committed_offset[FIRST] = 100
    kafka.arrived = {FIRST: [create_record(FIRST, 7)]}
    await kafka.consumer._take_arrived()
    assert not await kafka.consumer.force_commit()

    kafka.arrived = {FIRST: [create_record(FIRST, 100)]}
    await kafka.consumer._take_arrived()
    await kafka.consumer.force_commit()

    assert kafka.committed == [{FIRST: 101}]


async def test_a_partition_that_is_not_active_is_left_to_others(kafka: Kafka) -> None:
    kafka.arrived = {FIRST: [create_record(FIRST, 7)], SECOND: [create_record(SECOND, 3)]}
    kafka.active = {SECOND}

    await kafka.consumer._take_arrived()
    await kafka.consumer.force_commit()

    assert kafka.batches == [kafka.arrived[SECOND]]
    assert kafka.committed == [{SECOND: 4}]


async def test_records_of_a_suspended_flow_are_read_again(kafka: Kafka) -> None:
    kafka.arrived = {FIRST: [create_record(FIRST, 7)]}
    kafka.consumer.flow_active = False

    await kafka.consumer._take_arrived()

    assert (kafka.batches, kafka.sought) == ([], 1)


async def test_what_was_taken_before_a_rebalance_is_not_committed_after_it(kafka: Kafka) -> None:
    async def lose_the_partition(records: Sequence[ConsumerRecord]) -> None:
        kafka.app.consumer_generation_id += 1

    kafka.app.take = lose_the_partition
    kafka.arrived = {FIRST: [create_record(FIRST, 7)]}

    await kafka.consumer._take_arrived()

    assert not await kafka.consumer.force_commit()


async def test_what_was_taken_during_a_commit_is_committed_by_the_next(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.consumer._taken = {FIRST: 8}

    async def take_more(offsets: Mapping[TP, int], start_new_transaction: bool) -> bool:
        kafka.consumer._taken = {FIRST: 9}
        return True

    monkeypatch.setattr(kafka.consumer, "_commit_offsets", take_more)
    await kafka.consumer.force_commit()

    assert kafka.consumer._taken == {FIRST: 9}


def test_an_application_has_this_transport() -> None:
    async def take(records: Sequence[ConsumerRecord]) -> None:
        """It takes nothing here."""

    app = App("test", take, ["topic"], broker="kafka://127.0.0.1:1")

    assert isinstance(app.transport, Transport)
    assert app.transport.Consumer is Consumer
