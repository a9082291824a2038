"""The least that the answer costs: a process that reads, joins in DuckDB, sums, and keeps nothing.

A line waits until all partitions have been read ten minutes further, as in the peer in Flink SQL,
so the answer is exact for what is at most so late. After a failure it begins from the beginning.
"""

import gc
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import groupby

import duckdb
import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition

STEP_RECORDS = 100_000
READ_RECORDS = 5_000
READ_SECONDS_MAX = 0.1
ASK_SECONDS_MAX = 10.0
FLUSH_SECONDS_MAX = 60.0
READER = {
    "group.id": "floor",
    "enable.auto.commit": False,
    "fetch.message.max.bytes": 8 << 20,
    "queued.min.messages": 200_000,
    "queued.max.messages.kbytes": 128 << 10,
}
"""A long queue, so that the broker is read while DuckDB counts."""

TABLES = """
    CREATE TABLE users (record BIGINT, id VARCHAR, address VARCHAR, since TIMESTAMP);
    CREATE TABLE items (record BIGINT, id VARCHAR, origin VARCHAR, type VARCHAR, since TIMESTAMP);
    CREATE TABLE lines (
        user_id VARCHAR, item_id VARCHAR, quantity BIGINT, cents BIGINT, ordered_at TIMESTAMP
    );
    CREATE TABLE bought (
        hour BIGINT, type VARCHAR, place VARCHAR, user_id VARCHAR,
        purchases BIGINT, quantity BIGINT, cents BIGINT
    );
"""

READ = {
    "users.v1": """
        INSERT INTO users
        SELECT record, event.* FROM (
            SELECT record, from_json(value, '{
                "user_id": "VARCHAR", "address": "VARCHAR", "effective_at": "TIMESTAMP"
            }') AS event
            FROM records
        )
    """,
    "items.v1": """
        INSERT INTO items
        SELECT record, event.* FROM (
            SELECT record, from_json(value, '{
                "item_id": "VARCHAR", "origin": "VARCHAR", "type": "VARCHAR",
                "effective_at": "TIMESTAMP"
            }') AS event
            FROM records
        )
    """,
    "orders.v1": """
        INSERT INTO lines
        SELECT
            event.user_id, line.item_id, line.quantity, line.quantity * line.unit_price * 100,
            event.ordered_at
        FROM (
            SELECT event, unnest(event.lines) AS line FROM (
                SELECT from_json(value, '{
                    "user_id": "VARCHAR", "ordered_at": "TIMESTAMP", "lines": [
                        {"item_id": "VARCHAR", "quantity": "BIGINT", "unit_price": "DECIMAL(12, 2)"}
                    ]
                }') AS event
                FROM records
            )
        )
    """,
}
"""By topic. Each record is a text `value` and its offset, `record`."""

COUNT = """
    INSERT INTO bought
    SELECT
        epoch(date_trunc('hour', ordered_at))::BIGINT, type, address, user_id,
        count(*), sum(quantity), sum(cents)
    FROM lines
    ASOF JOIN (
        SELECT id, since, last(address ORDER BY record) AS address FROM users GROUP BY ALL
    ) AS buyers ON buyers.id = user_id AND buyers.since <= ordered_at
    ASOF JOIN (
        SELECT id, since, last(origin ORDER BY record) AS origin, last(type) AS type
        FROM items GROUP BY ALL
    ) AS goods ON goods.id = item_id AND goods.since <= ordered_at
    WHERE ordered_at < $until::TIMESTAMP - INTERVAL 10 MINUTE AND address = origin
    GROUP BY ALL
"""
FIRST = """
    SELECT epoch(date_trunc('hour', min(ordered_at)))::BIGINT FROM lines
    WHERE ordered_at < $until::TIMESTAMP - INTERVAL 10 MINUTE
"""
FORGET = "DELETE FROM lines WHERE ordered_at < $until::TIMESTAMP - INTERVAL 10 MINUTE"
CELLS = """
    SELECT
        {'hour': hour, 'type': type, 'place': place}::JSON::VARCHAR,
        {
            'users': count(DISTINCT user_id), 'purchases': sum(purchases)::BIGINT,
            'quantity': sum(quantity)::BIGINT, 'cents': sum(cents)::BIGINT
        }::JSON::VARCHAR
    FROM bought
    WHERE hour >= $since
    GROUP BY hour, type, place
"""

Partition = tuple[str, int]
"""Topic and number."""


class Floor:
    """The tables of the answer."""

    def __init__(self, threads: int) -> None:
        self._tables = duckdb.connect(config={"threads": threads})
        self._tables.execute(TABLES)
        self.joined = 0

    def read(self, topic: str, messages: Sequence[Message]) -> None:
        values = pa.array([each.value() for each in messages], pa.binary()).cast(pa.string())
        records = pa.table({"value": values, "record": [each.offset() for each in messages]})
        self._tables.register("records", records)
        self._tables.execute(READ[topic])

    def count(self, until: str) -> list[tuple[str, str]]:
        """Count what was ordered ten minutes before a time; returns the cells since its first hour.

        A cell is a key and a value, both in JSON.
        """
        [(since,)] = self._tables.execute(FIRST, {"until": until}).fetchall()
        if since is None:
            return []
        self._tables.execute(COUNT, {"until": until})
        [(counted,)] = self._tables.execute(FORGET, {"until": until}).fetchall()
        self.joined += counted
        return self._tables.execute(CELLS, {"since": since}).fetchall()


def find_ends(consumer: Consumer) -> dict[Partition, int]:
    """The end of each partition that has records."""
    found = {}
    for topic in READ:
        for number in consumer.list_topics(topic, ASK_SECONDS_MAX).topics[topic].partitions:
            first, end = consumer.get_watermark_offsets(
                TopicPartition(topic, number), ASK_SECONDS_MAX
            )
            if first < end:
                found[topic, number] = end
    return found


def read_steps(consumer: Consumer) -> Iterator[tuple[list[Message], str]]:
    """All records, step by step, and the time of the newest in the partition read least far."""
    ends = find_ends(consumer)
    consumer.assign([TopicPartition(*each, OFFSET_BEGINNING) for each in ends])
    until, step = dict.fromkeys(ends, "-infinity"), list[Message]()
    while until:
        messages = consumer.consume(READ_RECORDS, READ_SECONDS_MAX)
        last = {get_partition(each): each for each in messages}
        for partition, message in last.items():
            until[partition] = get_time(message)
            if message.offset() == ends[partition] - 1:
                del until[partition]
        step += messages
        if len(step) >= STEP_RECORDS or not until:
            yield step, min(until.values(), default="infinity")
            step = []


def get_partition(message: Message) -> Partition:
    topic, number = message.topic(), message.partition()
    assert topic is not None, "what was read has a topic"
    assert number is not None, "and a partition"
    return topic, number


def get_time(message: Message) -> str:
    """When its event happened; such texts are in the order of their times."""
    event = json.loads(message.value() or b"")
    return str(event.get("ordered_at") or event["effective_at"])


def main(servers: str, threads: str, lines: str, output: str) -> None:
    gc.disable()  # no object here is part of a cycle, and a collection visits all records
    floor, producer = Floor(int(threads)), Producer({"bootstrap.servers": servers})
    with closing(Consumer({"bootstrap.servers": servers} | READER)) as consumer:
        for messages, until in read_steps(consumer):
            messages.sort(key=get_partition)
            for topic, each in groupby(messages, key=lambda message: get_partition(message)[0]):
                floor.read(topic, list(each))
            for key, value in floor.count(until):
                producer.produce(output, value, key)
            if producer.flush(FLUSH_SECONDS_MAX):
                sys.exit("not all cells were written")
            mark = {"at": time.time(), "joined": floor.joined, "cpu": time.process_time()}
            print(json.dumps(mark), flush=True)  # noqa: T201 - this is its output
    sys.exit(floor.joined != int(lines))


if __name__ == "__main__":
    main(*sys.argv[1:5])
