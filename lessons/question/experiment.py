"""The same orders in three programs: plain Structured Streaming, the operator of the shop, Faust.

Equal answers, and what each costs. They run on a broker of their own, as the operator reads the
topics of the shop.
"""

import asyncio
import os
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from analytics_spark.job import query
from analytics_spark.job.blobs import from_bytes
from analytics_spark.job.source import ShopTopics
from analytics_spark.settings import JobSettings
from lessons import faust_engine
from lessons.broker import PREFIX, Topics, open_topics, quietly
from lessons.experiment import Finding, Lab
from lessons.lesson import Record, Row
from lessons.question import faust as in_faust
from lessons.question import spark as in_spark
from local_stack.progress import tell
from local_stack.testing import throwaway_kafka
from shared.messaging import topics as shop_topics
from shared.runtime.brokers import Brokers
from test_support.analytics.histories import (
    ORIGINS,
    PRICES,
    START,
    Event,
    at,
    confirmed,
    listed,
    moved,
    registered,
)
from test_support.analytics.published import publish

ORDERS = 2_000
USERS = 1_000
HOURS = 12
MOVES_PER_ORDER = 50
"""One user moves for so many orders."""
SEED = 5
COUNT_SECONDS_MAX = 1_200
LESSON = f"{PREFIX}question."
LATER = at(hour=HOURS + 24)
"""An order that closes all hours; its own hour is not compared."""

Hours = dict[str, tuple[int, int, int, int]]
"""By hour: local buyers, purchases, quantity and cents."""
COLUMNS = ("local_buyers", "purchases", "quantity", "cents")


@dataclass(slots=True)
class History:
    """Facts, then orders, as events of the shop; and the answer, by a plain loop."""

    facts: list[Event] = field(default_factory=list)
    orders: list[Event] = field(default_factory=list)
    answer: Hours = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a program answered, and what it took."""

    hours: Hours
    seconds: float
    state_bytes: int


def run(lab: Lab, orders: int = ORDERS) -> Sequence[Finding]:
    """Three programs; `orders` is their number."""
    history = make_history(orders)
    with quietly(throwaway_kafka()) as servers:
        asyncio.run(publish_all(servers, history))
        plain = count_in_spark(lab.session, servers)
        packed = count_in_operator(lab.session, servers)
        faust = asyncio.run(count_in_faust(servers, history.orders))
    return [
        judge("plain Structured Streaming", plain, history, orders),
        judge("the operator of the shop", packed, history, orders),
        judge("plain Faust", faust, history, orders),
    ]


def run_controls(lab: Lab) -> Sequence[Finding]:
    """The first address of a user, whatever became of them."""
    history = make_history(ORDERS)
    with quietly(throwaway_kafka()) as servers:
        asyncio.run(publish_all(servers, history))
        answer = count_in_spark(lab.session, servers, in_spark.count_by_first_address)
    return [judge("plain, without moves", answer, history, ORDERS)]


def make_history(count: int) -> History:
    """Users who move, four items, and orders in the order of their times."""
    chance = random.Random(SEED)
    places, items = sorted(ORIGINS.values()), sorted(PRICES)
    users = [f"user {number}" for number in range(USERS)]
    homes: dict[str, list[tuple[datetime, str]]] = {
        user: [(START, chance.choice(places))] for user in users
    }
    history = History()
    buyers: dict[str, set[str]] = defaultdict(set)
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for number in range(count):
        ordered_at = at() + timedelta(seconds=number * HOURS * 3600 // count)
        if number % MOVES_PER_ORDER == 0:
            homes[chance.choice(users)].append((ordered_at, chance.choice(places)))
        user, item, quantity = chance.choice(users), chance.choice(items), chance.randint(1, 4)
        history.orders.append(
            confirmed(f"order {number}", user, (item, quantity), ordered_at=ordered_at)
        )
        if homes[user][-1][1] == ORIGINS[item]:
            hour = to_hour(ordered_at)
            buyers[hour].add(user)
            cents = quantity * int(PRICES[item].replace(".", ""))
            sums[hour] = [a + b for a, b in zip(sums[hour], (1, quantity, cents), strict=True)]
    history.facts += [listed(item) for item in items]
    for user, versions in homes.items():
        history.facts.append(registered(user, versions[0][1]))
        history.facts += [
            moved(user, place, since=since, version=number)
            for number, (since, place) in enumerate(versions[1:], start=2)
        ]
    history.orders.append(confirmed("the last", users[0], (items[0], 1), ordered_at=LATER))
    history.answer = {
        hour: (len(buyers[hour]), purchases, quantity, cents)
        for hour, (purchases, quantity, cents) in sums.items()
    }
    return history


async def publish_all(servers: str, history: History) -> None:
    """To the topics of the shop with their headers, and to those of the lesson without."""
    await shop_topics.create(Brokers(servers))
    async with open_topics(servers) as topics:
        await topics.create(dict.fromkeys(lesson_topics().values(), 1))
        for events in (history.facts, history.orders):
            await publish(topics.producer, events)
            await topics.publish(LESSON, map(to_record, events))


def lesson_topics() -> Mapping[str, str]:
    return {name: f"{LESSON}{name}" for name in ("users", "items", "orders")}


def to_record(event: Event) -> Record:
    return Record(topic=event.topic.removesuffix(".v1"), key=event.key, value=event.value.decode())


def count_in_spark(
    session: SparkSession,
    servers: str,
    answer: Callable[[DataFrame], DataStreamWriter] = in_spark.count_local_buyers,
) -> Answer:
    """The same function as in the vector, on topics of which each batch may have all."""
    records = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", ",".join(lesson_topics().values()))
        .option("startingOffsets", "earliest")
        .load()
        .select(
            F.regexp_extract("topic", r"([^.]+)$", 1).alias("topic"),
            F.col("value").cast("string"),
        )
    )
    found: Hours = {}

    def collect(batch: DataFrame, _: int) -> None:
        for row in batch.collect():
            found[to_hour(row["hour"])] = tuple(row[column] for column in COLUMNS)

    with tempfile.TemporaryDirectory(prefix="hometown-lesson-") as folder:
        writer = answer(records).foreachBatch(collect).trigger(availableNow=True)
        began_at = time.monotonic()
        running = writer.option("checkpointLocation", Path(folder).as_uri()).start()
        await_end(running)
        seconds = time.monotonic() - began_at
        print_plan(running)
        return Answer(hours=found, seconds=seconds, state_bytes=size(Path(folder) / "state"))


def print_plan(running: StreamingQuery) -> None:
    """The stateful steps of the plan, from the sink to the sources."""
    progress = running.lastProgress
    operators = [each.operatorName for each in progress.stateOperators] if progress else []
    tell(f"plan of the plain query, from the sources: {' <- '.join(operators)}")


def count_in_operator(session: SparkSession, servers: str) -> Answer:
    session.dataSource.register(ShopTopics)
    cells: dict[tuple[object, ...], list[int]] = defaultdict(lambda: [0, 0, 0])

    def collect(batch: DataFrame, _: int) -> None:
        for row in batch.collect():
            for cell in from_bytes(row["cells"]).to_pylist():
                if cell["user_id"]:
                    key = (cell["hour"], cell["user_id"], cell["item_id"])
                    values = (cell["purchases"], cell["quantity"], cell["cents"])
                    cells[key] = [a + b for a, b in zip(cells[key], values, strict=True)]

    with tempfile.TemporaryDirectory(prefix="hometown-lesson-") as folder:
        settings = JobSettings(
            environment="development",
            database_url="postgresql://127.0.0.1/unused",
            kafka_bootstrap_servers=servers,
            checkpoint_dir=Path(folder),
        )
        began_at = time.monotonic()
        frame = query.outcomes(session, settings)
        await_end(query.start(frame, collect, settings, available_now=True))
        seconds = time.monotonic() - began_at
        return Answer(
            hours=sum_hours(cells), seconds=seconds, state_bytes=size(Path(folder) / "state")
        )


def sum_hours(cells: Mapping[tuple[object, ...], Sequence[int]]) -> Hours:
    buyers: dict[str, set[object]] = defaultdict(set)
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for (hour, user, _), values in cells.items():
        assert isinstance(hour, int)
        name = to_hour(datetime.fromtimestamp(hour / 1000, UTC))
        if values[0]:
            buyers[name].add(user)
        sums[name] = [a + b for a, b in zip(sums[name], values, strict=True)]
    return {name: (len(buyers[name]), *values) for name, values in sums.items()}  # type: ignore[misc]


async def count_in_faust(servers: str, orders: Sequence[Event]) -> Answer:
    """Orders come when all facts have been read: an order that is read before its user is lost."""
    out, names = f"{LESSON}out", dict(lesson_topics()) | {"orders": f"{LESSON}live.orders"}
    async with open_topics(servers) as topics:
        await topics.create({out: 1, names["orders"]: 1})
        with tempfile.TemporaryDirectory(prefix="hometown-lesson-") as folder:
            app = faust_engine.make_app(f"{LESSON}{uuid4()}", servers, folder, "rocksdb://")
            records = {
                name: app.topic(topic, key_serializer="raw", value_serializer="raw")
                for name, topic in names.items()
            }
            in_faust.count_local_buyers(app, records, app.topic(out, value_serializer="json"))
            async with faust_engine.running(app, topics, names.values()):
                await faust_engine.wait_until_read(topics, app)
                began_at = time.monotonic()
                await asyncio.to_thread(asyncio.run, publish_live(servers, orders))
                await faust_engine.wait_until_read(topics, app, COUNT_SECONDS_MAX)
                seconds = time.monotonic() - began_at
                state_bytes = size(Path(folder))
        return Answer(hours=await read_last(topics, out), seconds=seconds, state_bytes=state_bytes)


async def publish_live(servers: str, orders: Sequence[Event]) -> None:
    async with open_topics(servers) as topics:
        await topics.publish(f"{LESSON}live.", map(to_record, orders))


async def read_last(topics: Topics, out: str) -> Hours:
    """The last row of each hour."""
    rows: list[Row] = await topics.read_all(out)
    return {str(row["hour"]): tuple(row[each] for each in COLUMNS) for row in rows}  # type: ignore[misc]


def await_end(running: StreamingQuery) -> None:
    if not running.awaitTermination(COUNT_SECONDS_MAX):
        running.stop()
        raise TimeoutError(f"the query does not end within {COUNT_SECONDS_MAX} s")


def judge(name: str, answer: Answer, history: History, orders: int) -> Finding:
    """The hours must be equal to those of the loop; the hour of the last order is not compared."""
    hours = {hour: totals for hour, totals in answer.hours.items() if hour != to_hour(LATER)}
    row = {
        "program": name,
        "hours": len(hours),
        "local buyers": sum(buyers for buyers, *_ in hours.values()),
        "amount": f"{sum(cents for *_, cents in hours.values()) // 100:,}",
        "seconds": round(answer.seconds, 1),
        "orders/s": round(orders / answer.seconds),
        "state kB": answer.state_bytes // 1000,
    }
    return Finding(row=row, claim="as a plain loop counts", holds=hours == history.answer)


def size(folder: Path) -> int:
    """Bytes of all files in a folder that a server or an engine may write to meanwhile."""
    total = 0
    # `os.walk` passes over a folder that is deleted meanwhile; `Path.rglob` fails.
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(parent, name).stat().st_size
    return total


def to_hour(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:00:00")
