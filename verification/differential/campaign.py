"""Random histories through Kafka, Spark and PostgreSQL: do the cells equal definition.sql?

make differential
"""

import argparse
import asyncio
import logging
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, product
from pathlib import Path

from pyspark.sql import SparkSession

from analytics_spark.job.session import open_session
from analytics_spark.settings import JobSettings
from fetching import aot_cache
from fetching.errors import Failure
from local_stack import figures
from local_stack.figures import Figure
from local_stack.progress import Tone, complain, duration, tell
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.testing import new_database, throwaway_kafka, throwaway_postgres
from shared.messaging import topics
from shared.runtime import postgres
from shared.runtime.brokers import Brokers
from shared.runtime.identifiers import new_id
from shared.runtime.progress import tell_in_place
from test_support.analytics.running_job import empty_topics
from verification.differential.history_trial import Outcome, Setup, try_history
from verification.differential.random_history import RandomHistory

ORDERS = 50_000
SEEDS = 20
ALL_AT_ONCE = 10_000_000
PIECES = 12
"""The approximate number of batches of a history that is read in pieces."""
SINGLY_ORDERS = 40
"""With one record per batch, each batch takes a third of a second."""
WRONG_SHOWN_MAX = 10


def setups(orders: int) -> Iterator[Setup]:
    """All ways to cut the work, in an endless cycle."""
    ways = product((ALL_AT_ONCE, orders // PIECES), (1, 2, 4), (1, 8, 32))
    for records, partitions, buckets in cycle(ways):
        yield Setup(records_per_trigger=records, shuffle_partitions=partitions, buckets=buckets)


def main() -> int:
    arguments = parser().parse_args()
    logging.getLogger("analytics_spark.job.dead_letters").setLevel(logging.CRITICAL)
    began_at = time.monotonic()
    tried: list[tuple[str, Outcome, float]] = []
    try:
        with servers() as (spark, settings, superuser):
            for name, history, setup in trials(arguments.first, arguments.seeds, arguments.orders):
                tell_in_place(f"{name}: {describe(setup)}")
                trial_at = time.monotonic()
                outcome = try_alone(spark, settings, superuser, history, setup)
                tried.append((name, outcome, time.monotonic() - trial_at))
                show(name, setup, outcome)
    except Failure as failure:
        complain(str(failure))
        return 1
    return verdict(tried, time.monotonic() - began_at)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m verification.differential", description=__doc__)
    made.add_argument("--seeds", type=int, default=SEEDS)
    made.add_argument("--first", type=int, default=1, metavar="SEED")
    made.add_argument("--orders", type=int, default=ORDERS, help="of each seed")
    return made


def trials(first: int, seeds: int, orders: int) -> Iterator[tuple[str, RandomHistory, Setup]]:
    """A short history that is read record by record, and then the large ones."""
    singly = Setup(records_per_trigger=1, shuffle_partitions=2, buckets=8)
    yield "record by record", RandomHistory(first, SINGLY_ORDERS), singly
    for seed, setup in zip(range(first, first + seeds), setups(orders), strict=False):
        yield f"seed {seed}", RandomHistory(seed, orders), setup


@contextmanager
def servers() -> Iterator[tuple[SparkSession, JobSettings, str]]:
    """A session, settings with the servers' addresses, the superuser's DSN. Raises Failure."""
    with (
        tempfile.TemporaryDirectory(prefix="hometown-differential-") as folder,
        throwaway_postgres() as dsns,
        throwaway_kafka() as kafka_servers,
    ):
        asyncio.run(topics.create(Brokers(kafka_servers)))
        settings = JobSettings(
            environment="development",
            database_url=dsns["postgres"],
            kafka_bootstrap_servers=kafka_servers,
            checkpoint_dir=Path(folder),
            spark_aot_cache=aot_cache.make(tell_in_place),
        )
        spark = open_session(settings)
        try:
            yield spark, settings, dsns["postgres"]
        finally:
            spark.stop()


def try_alone(
    spark: SparkSession, settings: JobSettings, superuser: str, history: RandomHistory, setup: Setup
) -> Outcome:
    """Run a trial with empty tables and topics and a new checkpoint."""
    asyncio.run(empty_topics(settings.kafka_bootstrap_servers))
    with new_database(superuser) as dsn:
        asyncio.run(postgres.migrate(dsn, "analytics_spark"))
        own = {
            "database_url": type(settings.database_url)(dsn),
            "checkpoint_dir": settings.checkpoint_dir / str(new_id()),
        }
        return try_history(spark, settings.model_copy(update=own), history, setup)


def describe(setup: Setup) -> str:
    at_once = setup.records_per_trigger >= ALL_AT_ONCE
    records = "all at once" if at_once else f"{setup.records_per_trigger} at a time"
    return f"{records}, {setup.shuffle_partitions} partitions, {setup.buckets} buckets"


def show(name: str, setup: Setup, outcome: Outcome) -> None:
    tell(
        f"{name}: {describe(setup)}: {outcome.batches} batches, {outcome.counted} orders counted,"
        f" {outcome.late} late, {outcome.bad} bad, {outcome.cells} cells,"
        f" {len(outcome.wrong)} wrong",
        Tone.BAD if outcome.wrong else Tone.GOOD,
    )
    for line in outcome.wrong[:WRONG_SHOWN_MAX]:
        tell(f"  {line}")


def verdict(tried: Sequence[tuple[str, Outcome, float]], seconds: float) -> int:
    wrong = sum(len(outcome.wrong) for _, outcome, _ in tried)
    blind = sum(outcome.blind for _, outcome, _ in tried)
    cells = sum(outcome.cells for _, outcome, _ in tried)
    found = [
        Figure(name="cells", value=cells, unit="cells"),
        Figure(name="wrong", value=wrong, unit="cells"),
        Figure(name="wrong if nothing were late", value=blind, unit="cells"),
        *(Figure(name=name, value=each, unit="s") for name, _, each in tried),
    ]
    folder = RunFolder(Settings().run_dir)
    folder.create()
    path = figures.write(folder, "differential", found)
    tell(f"{wrong} of {cells} cells are wrong, after {duration(seconds)}; figures: {path}")
    if not blind:
        complain("no history had late orders to find: make them longer (--orders)")
    return 1 if wrong or not blind else 0
