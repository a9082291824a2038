"""What the peers of the analytics do without a broker: the answer of DuckDB, marks, cells, jars."""

import json
import re
from collections import defaultdict
from types import SimpleNamespace

import pytest
from confluent_kafka import Message

from benchmarks.analytics import throughput
from benchmarks.analytics.peers import peer
from benchmarks.analytics.peers.duckdb_floor import Floor
from benchmarks.analytics.peers.peer import Mark, PeerRun
from benchmarks.analytics.peers.programs import FLINK_JARS
from benchmarks.analytics.true_cells import CellKey, CellValue

KEY = CellKey(hour=1_767_571_200, type="thing", place="here")
VALUE = CellValue(users=1, purchases=1, quantity=2, cents=2_468)


@pytest.fixture
def floor() -> Floor:
    """It has read a user, two places of an item since the same time, and an order at 00:20."""
    read = Floor(threads=1)
    read.read("users.v1", [record(0, user_id="u", address="there", effective_at=at("00:00"))])
    item = {"item_id": "i", "type": "thing", "effective_at": at("00:00")}
    read.read("items.v1", [record(1, origin="here", **item), record(0, origin="there", **item)])
    line = {"item_id": "i", "quantity": 2, "unit_price": "12.34"}
    read.read("orders.v1", [record(0, user_id="u", ordered_at=at("00:20"), lines=[line])])
    return read


def at(time: str) -> str:
    return f"2026-01-05T{time}:00.000000Z"


def record(offset: int, **data: object) -> Message:
    return Message(value=json.dumps(data).encode(), offset=offset)


def test_an_order_waits_for_what_is_ten_minutes_late(floor: Floor) -> None:
    assert floor.count(at("00:30")) == []
    floor.read("users.v1", [record(1, user_id="u", address="here", effective_at=at("00:10"))])

    ((key, value),) = floor.count(at("00:31"))

    assert (json.loads(key), json.loads(value)) == (KEY._asdict(), VALUE._asdict())
    assert floor.joined == 1
    assert floor.count("infinity") == [], "an order is counted once"


def test_a_move_that_is_later_changes_nothing(floor: Floor) -> None:
    assert floor.count("infinity") == []
    floor.read("users.v1", [record(1, user_id="u", address="here", effective_at=at("00:10"))])

    assert floor.joined == 1
    assert floor.count("infinity") == []


def test_the_last_record_of_a_key_is_its_cell() -> None:
    gone = KEY._replace(place="there")
    written = [(KEY, VALUE._replace(users=7)), (gone, VALUE), (KEY, VALUE), (gone, None)]
    records = [
        SimpleNamespace(key=json.dumps(key._asdict()), value=value and json.dumps(value._asdict()))
        for key, value in written
    ]

    assert peer.find_last(records) == {KEY: VALUE}


def test_marks_are_found_between_other_lines() -> None:
    words = 'WARNING: a method\n\n{"at": 2.5, "joined": 7, "cpu": 1.5}\nanother\n'
    assert peer.to_marks(words) == [Mark(at=2.5, joined=7, cpu=1.5)]


@pytest.mark.parametrize("joined", [(10,), (4, 10)], ids=["one mark", "two marks"])
def test_the_smallest_run_of_a_peer_has_figures(joined: tuple[int, ...]) -> None:
    marks = [Mark(at=100 + 2 * each, joined=each, cpu=each) for each in joined]
    run = PeerRun(started_at=100, marks=marks, resident_bytes_max=1, first_at=101, cells={})
    samples = defaultdict[str, list[float]](list)

    throughput.take_peer("it", run, 6, samples)

    assert samples[f"it: {throughput.STEADY}"] == [0.5]
    assert samples[f"it: {throughput.STEADY_CPU}"] == [1_000_000]


def test_every_jar_of_flink_is_pinned() -> None:
    jars = FLINK_JARS.read()
    assert len({jar.file_name for jar in jars}) == len(jars) > 40
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in jars)
