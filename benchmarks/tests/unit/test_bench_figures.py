"""The benchmark publishes what the job counts, and computes its figures correctly."""

import json
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Any

import pytest
from aiokafka import TopicPartition

from analytics_spark.job.cells import KEY, NOBODY, VALUES
from benchmarks.analytics import event_to_row, state_growth, throughput
from benchmarks.analytics.counting import SeenBatch, select_steady
from benchmarks.analytics.shop_history import ORDERS_TOPIC, ShopHistory
from benchmarks.analytics.true_cells import CellKey, Cells, CellValue
from shared.messaging import messages, wire
from shared.messaging.wire import OutgoingRecord
from test_support.analytics.histories import Event
from test_support.analytics.small_job import SmallJob

ORDERS = 3_000


def test_the_whole_history_is_counted_and_comes_to_its_totals() -> None:
    history = ShopHistory(1, users=200, items=50)
    records = [*history.opening(), *chain.from_iterable(history.backlog(ORDERS, hours=2))]

    job = SmallJob().read(*(event_of(number, record) for number, record in enumerate(records)))

    assert history.totals.orders == ORDERS
    assert job.tally == {"counted": ORDERS} | dict.fromkeys(
        ("late", "duplicates", "cancellations", "ignored", "bad"), 0
    )
    sums = tuple(map(sum, zip(*job.cells().values(), strict=True)))
    assert sums == (ORDERS, history.totals.quantity, history.totals.cents)
    assert local_cells(job) == history.cells()
    assert 0 < sum(cell.purchases for cell in history.cells().values()) < ORDERS // 2


def local_cells(job: SmallJob) -> Cells:
    """Its cells without users, items and genders."""
    rows = [
        dict(zip((*KEY, *VALUES), (*cell, *amounts), strict=True))
        for cell, amounts in job.cells().items()
    ]
    groups = defaultdict[tuple[Any, ...], list[dict[str, Any]]](list)
    for row in rows:
        if row["user_id"] != NOBODY:
            groups[row["hour"], row["item_type"], row["address"]].append(row)
    return {
        CellKey(hour=hour // 1_000, type=type_, place=place): CellValue(
            len({row["user_id"] for row in group}),
            *(sum(row[name] for row in group) for name in CellValue._fields[1:]),
        )
        for (hour, type_, place), group in groups.items()
    }


def event_of(number: int, record: OutgoingRecord) -> Event:
    headers = dict(wire.unpack(record.headers))
    assert record.key is not None
    assert record.value is not None
    return Event(
        topic=record.topic,
        key=record.key.decode(),
        type=headers[messages.TYPE].decode(),
        version=int(headers[messages.STREAM_VERSION]),
        schema_version=int(headers[messages.SCHEMA_VERSION]),
        data=record.value,
        number=number,
    )


def test_a_seed_has_one_history() -> None:
    values = [record.value for record in orders_of(seed=1)]
    assert values == [record.value for record in orders_of(seed=1)]
    assert values != [record.value for record in orders_of(seed=2)]


def orders_of(seed: int) -> list[OutgoingRecord]:
    (page,) = ShopHistory(seed, users=200, items=50).backlog(10, hours=1)
    return page


def test_the_steady_rate_is_measured_over_full_batches_only() -> None:
    seen = batches_of([100, 100, 100, 100, 7])
    assert [batch.batch_id for batch in select_steady(seen)] == [1, 2, 3]
    assert throughput.seconds_of_full(seen) == [1, 2, 3]


@pytest.mark.parametrize("counts", [[7, 7], [100, 3], [7, 7, 7]])
def test_the_smallest_run_has_a_steady_part(counts: list[int]) -> None:
    assert len(select_steady(batches_of(counts))) >= 2


def batches_of(counts: Sequence[int]) -> list[SeenBatch]:
    """Each takes a second longer than the one before."""
    return [
        SeenBatch(
            batch_id=number,
            counted=counted,
            offsets="{}",
            seen_at=number * (number + 1) / 2,
            cpu_seconds=number,
            resident_bytes=1,
        )
        for number, counted in enumerate(counts)
    ]


def test_an_order_waits_from_its_append_until_its_batch_is_seen() -> None:
    """Only orders appended since the begin count; a batch can hold earlier ones too."""
    zero, one = TopicPartition(ORDERS_TOPIC, 0), TopicPartition(ORDERS_TOPIC, 1)
    batch = SeenBatch(
        batch_id=0,
        counted=4,
        offsets=json.dumps({ORDERS_TOPIC: {"0": [3, 6], "1": [0, 1]}}),
        seen_at=10.0,
        cpu_seconds=0,
        resident_bytes=0,
    )

    waited = event_to_row.waits({zero: 4, one: 0}, {zero: [8.0, 9.0, 9.5], one: [7.0]}, [batch])

    assert list(waited) == [2_000, 1_000, 3_000]


def test_sizes_are_reported_by_fifths_and_the_last_is_compared_with_the_second() -> None:
    sizes = state_growth.to_sizes("state", [*range(10), 6])
    assert [each.value for each in sizes] == [1, 3, 5, 7, 9, 6]
    assert sizes[-1].ratio == 2
