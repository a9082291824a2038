"""The program on a real Kafka, compared with Spark's operator on the same events."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaProducer

from analytics_faust.worker import NAME
from local_stack.run_folder import RunFolder
from shared.eventsourcing.event_store import get_partition
from shared.messaging.topics import TOPICS
from test_support.analytics import running_worker
from test_support.analytics.histories import (
    HOUR,
    Event,
    at,
    cancelled,
    confirmed,
    deleted,
    listed,
    moved,
    origin_corrected,
    registered,
    sample,
)
from test_support.analytics.published import Elsewhere
from test_support.analytics.running_worker import Kafka, Worker, hour_at
from test_support.analytics.small_job import SmallJob
from test_support.analytics.still_histories import Totals, history
from test_support.raw_records import NOT_UTF_8, raw, write_each

SAMPLE = (4, 4, 12, 44_506_56)
SEEDS = 5
ORDERS = 120
BATCH_EVENTS = 17


def count_by_spark(events: Sequence[Event], hour: datetime = HOUR) -> Totals:
    """The totals of Spark's operator, batch by batch."""
    job = SmallJob()
    for start in range(0, len(events), BATCH_EVENTS):
        job.read(*events[start : start + BATCH_EVENTS])
    return job.hour(hour)


class Play:
    """Publishes histories to a running worker."""

    def __init__(self, kafka: Kafka, worker: Worker, elsewhere: Elsewhere) -> None:
        self._kafka = kafka
        self._worker = worker
        self._elsewhere = elsewhere

    async def __call__(self, *parts: Sequence[Event]) -> Totals:
        """The first hour after these parts; each is read before the next one is published."""
        for events in parts:
            await self._kafka.publish(*self._elsewhere.events(events))
            await self._kafka.wait_until_settled()
        return self.hour(HOUR)

    def hour(self, hour: datetime) -> Totals:
        return hour_at(self._worker, self._elsewhere.time(hour))


@pytest.fixture(scope="module")
def worker(
    broker: str, issuing: RunFolder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Worker]:
    """One for all tests of this module, each of which has a day of its own."""
    worker = running_worker.start(broker, tmp_path_factory.mktemp("faust"), issuing)
    yield worker.wait_until_ready()
    assert worker.stop() == 0


@pytest.fixture
def play(kafka: Kafka, worker: Worker, elsewhere: Elsewhere) -> Play:
    return Play(kafka, worker, elsewhere)


async def test_v1_the_sample_has_four_local_buyers(play: Play) -> None:
    """TV-3."""
    assert await play(sample()) == SAMPLE == count_by_spark(sample())


async def test_v2_repeated_records_count_once(play: Play) -> None:
    """TV-5 a."""
    assert await play(sample(), sample(), sample()[::-1]) == SAMPLE


async def test_v3_v4_hours_are_half_open(play: Play) -> None:
    """TV-5 b and c."""
    last = confirmed("last", "Jack", ("iphone", 1), ordered_at=at(60 - 0.001 / 60))
    first = confirmed("first", "Jack", ("iphone", 1), ordered_at=at(hour=1))

    assert (await play(sample(), [last, first]))[:2] == (4, 5)
    assert play.hour(at(hour=1))[:2] == (1, 1)


async def test_tv1_a_table_holds_the_last_value_of_each_key(play: Play) -> None:
    """Five records of three keys: the first addresses of Jack and Lily are overwritten."""
    facts = [
        registered("Jack", "SH"),
        registered("Lily", "BJ"),
        registered("Mike", "SZ"),
        moved("Jack", "BJ", since=at(-60)),
        moved("Lily", "SH", since=at(-60)),
    ]
    orders = [
        confirmed(f"{user} {item}", user, (item, 1), ordered_at=at(1))
        for user in ("Jack", "Lily", "Mike")
        for item in ("iphone", "ipad", "iwatch")
    ]
    items = [listed(item) for item in ("iphone", "ipad", "iwatch")]

    assert await play([*facts, *items], orders) == (3, 3, 3, 5_388_88 + 4_888_88 + 2_668_88)


async def test_an_order_before_its_user_is_lost_and_spark_counts_it(play: Play) -> None:
    """V5, TV-5 d. Why an order has to be joined as of its time, whenever its user becomes known."""
    early = [confirmed("early", "Tom", ("iphone", 1), ordered_at=at(40))]
    tom = [registered("Tom", "BJ")]

    assert await play(sample(), early, tom) == SAMPLE
    assert count_by_spark([*sample(), *early, *tom])[:2] == (5, 5)
    assert (await play(tom, early))[:2] == (5, 5)  # as a record that is repeated, it is found


async def test_a_line_before_its_item_is_lost_and_spark_counts_it(play: Play) -> None:
    [jack, iphone, order] = (
        [registered("Jack", "BJ")],
        [listed("iphone")],
        [confirmed("early", "Jack", ("iphone", 1), ordered_at=at(1))],
    )

    assert await play(jack, order, iphone) == (0, 0, 0, 0)
    assert count_by_spark([*jack, *order, *iphone])[:2] == (1, 1)


AFTER_THE_MOVE = [
    confirmed("ipad", "Jack", ("ipad", 1), ordered_at=at(31)),
    confirmed("iphone", "Jack", ("iphone", 1), ordered_at=at(31)),
]
MOVE = [moved("Jack", "SH", since=at(30))]


async def test_v6_a_move_announced_at_once_is_counted_alike(play: Play) -> None:
    """TV-5 e."""
    expected = (4, 5, 13, 44_506_56 + 4_888_88)

    assert await play(sample(), MOVE, AFTER_THE_MOVE) == expected
    assert count_by_spark([*sample(), *MOVE, *AFTER_THE_MOVE]) == expected


async def test_v7_a_move_announced_late_is_counted_differently(play: Play) -> None:
    here, spark = (4, 5, 13, 44_506_56 + 5_388_88), (4, 5, 13, 44_506_56 + 4_888_88)

    assert await play(sample(), AFTER_THE_MOVE, MOVE) == here
    assert count_by_spark([*sample(), *AFTER_THE_MOVE, *MOVE]) == spark


async def test_an_order_from_before_a_move_that_arrives_after_it_differs(play: Play) -> None:
    late = [confirmed("late", "Jack", ("iphone", 1), ordered_at=at(20))]

    assert await play(sample(), MOVE, late) == SAMPLE
    assert count_by_spark([*sample(), *MOVE, *late])[:2] == (4, 5)


async def test_v11_a_corrected_origin_changes_nothing_that_is_counted(play: Play) -> None:
    corrected = [origin_corrected("iphone", "SH")]
    again = [confirmed("again", "Lily", ("iphone", 1), ordered_at=at(10))]

    assert await play(sample(), corrected) == SAMPLE
    assert count_by_spark([*sample(), *corrected]) != SAMPLE
    assert (await play(again))[:2] == (4, 5)


async def test_v9_an_order_is_never_too_late(play: Play) -> None:
    """TV-5 f."""
    much_later = [confirmed("later", "Lily", ("iphone", 1), ordered_at=at(hour=5))]
    late = [confirmed("late", "Jack", ("iphone", 2), ordered_at=at(50))]

    assert (await play(sample(), much_later, late))[:2] == (4, 5)
    job = SmallJob().read(*sample()).read(*much_later).read(*late)
    assert (job.hour(HOUR), job.tally["late"]) == (SAMPLE, 1)


async def test_v10_v12_cancelling_takes_out_what_was_counted(play: Play) -> None:
    again = [confirmed("again", "Jack", ("iphone", 1), ("iphone", 2), ordered_at=at(10))]
    first = [cancelled("Jack iphone", "Jack", ("iphone", 3), ordered_at=at(1 / 60))]
    second = [cancelled("again", "Jack", ("iphone", 1), ("iphone", 2), ordered_at=at(10))]

    assert (await play(sample(), again))[:2] == (4, 6)
    assert (await play(first))[:2] == (4, 5)
    assert (await play(second, MOVE, second))[:2] == (3, 3)
    assert (await play(again))[:2] == (3, 3)  # a repeat of what was cancelled


async def test_a_deleted_user_keeps_what_was_counted_and_buys_no_more(play: Play) -> None:
    gone = [deleted("Jack", since=at(30))]
    after = [confirmed("after", "Jack", ("iphone", 1), ordered_at=at(40))]

    assert await play(sample(), gone, after) == SAMPLE == count_by_spark([*sample(), *gone, *after])


async def test_without_moves_the_answers_are_equal(
    kafka: Kafka, worker: Worker, days: Iterator[int]
) -> None:
    """All at once: an order waits for its user's partition, and a line for its item's."""
    played = [(history(seed, ORDERS), Elsewhere.on(next(days))) for seed in range(SEEDS)]
    for each, elsewhere in played:
        await kafka.publish(*elsewhere.events(each.events))
    await kafka.wait_until_settled()

    for each, elsewhere in played:
        for number in range(2):
            expected = each.hour(number)
            assert expected[1] > 0
            assert count_by_spark(each.events, at(hour=number)) == expected
            assert hour_at(worker, elsewhere.time(at(hour=number))) == expected


async def test_a_bad_record_is_dead_lettered_and_stops_nothing(
    broker: str, kafka: Kafka, worker: Worker, elsewhere: Elsewhere, play: Play
) -> None:
    before = worker.get("/v1/status")["bad_records"]
    letters = TOPICS["users.v1"].dead_letters_of(NAME)
    [jack] = elsewhere.events([registered("Jack", "BJ")])
    await kafka.producer.send_and_wait("users.v1", b"\xff", jack.key.encode(), partition=0)
    await write_each(broker, [raw("users.v1", 0, (NOT_UTF_8, b"x")), raw("users.v1", 0)])

    assert await play(sample()) == SAMPLE
    assert worker.get("/v1/status")["bad_records"] == before + 3
    assert await kafka.count_records(letters, TOPICS["users.v1"].partitions) == before + 3


async def test_a_record_of_an_aborted_transaction_was_never_sent(
    broker: str, kafka: Kafka, worker: Worker, elsewhere: Elsewhere, play: Play
) -> None:
    """Before other orders of its partition, so that these can be seen to be read.

    The broker writes the record that ends a transaction after its answer: as the last record of a
    partition, it would count as one that is never read.
    """
    before = worker.get("/v1/status")["bad_records"]
    partitions = TOPICS["orders.v1"].partitions
    records = await kafka.count_records("orders.v1", partitions)
    [jack] = elsewhere.events([registered("Jack", "BJ")])
    partition = get_partition("orders.v1", jack.key)
    async with AIOKafkaProducer(
        bootstrap_servers=broker, transactional_id=str(uuid4())
    ) as producer:
        await producer.begin_transaction()
        await producer.send_and_wait("orders.v1", b"{}", b"key", partition=partition)
        await producer.abort_transaction()
    await kafka.wait_until_written("orders.v1", partitions, records + 2)

    assert await play(sample()) == SAMPLE
    assert worker.get("/v1/status")["bad_records"] == before
