"""kill -9 of the Spark job around its commit, of PostgreSQL and of Kafka: the cells stay right.

make crashes
"""

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pyarrow as pa

from analytics_spark.job.failpoints import JobFailpoint
from fetching import aot_cache
from fetching.errors import Failure
from local_stack import figures, ports, supervision
from local_stack.figures import Figure
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES, dsn
from local_stack.progress import Tone, complain, duration, tell
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.stack_spec import StackContext, StackSpec
from local_stack.testing import new_database, throwaway_stack
from shared.messaging import topics
from shared.runtime import postgres
from shared.runtime.brokers import Brokers
from shared.runtime.progress import tell_in_place
from test_support.analytics.running_job import empty_topics
from verification.differential.history_trial import Outcome, compare_with_oracle, publish
from verification.differential.random_history import RandomHistory

ORDERS = 4_000
SEEDS = 20
BATCHES = 15
"""The approximate number of batches of a history."""
STEP_TIMES_MAX = 3
POLL_SECONDS = 0.1
PROGRESS_SECONDS_MAX = 300
END_SECONDS_MAX = 180
WRONG_SHOWN_MAX = 10
LOG_CHARACTERS_SHOWN = 2_000

READ_ENDS = "SELECT offsets FROM batches ORDER BY batch_id DESC LIMIT 1"

READ_ORDER = "SELECT batch_id FROM batches ORDER BY committed_at, batch_id"


class Blow(StrEnum):
    JOB_BEFORE = JobFailpoint.BATCH_RECEIVED
    JOB_INSIDE = JobFailpoint.CELLS_WRITTEN
    JOB_AFTER = JobFailpoint.CELLS_COMMITTED
    POSTGRES = "postgres"
    KAFKA = "kafka"


OF_THE_JOB = (Blow.JOB_BEFORE, Blow.JOB_INSIDE, Blow.JOB_AFTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One history with its own tables, topics and checkpoint."""

    context: StackContext
    dsn: str
    folder: Path
    records: pa.Table
    records_per_trigger: int
    without_epoch: bool = False

    @property
    def environment(self) -> Mapping[str, str]:
        return os.environ | {
            "ENVIRONMENT": "development",
            "DATABASE_URL": self.dsn,
            "KAFKA_BOOTSTRAP_SERVERS": self.context.address("kafka"),
            "CHECKPOINT_DIR": str(self.folder / "checkpoint"),
            "SPARK_AOT_CACHE": str(aot_cache.make(tell_in_place)),
            "SPARK_LOCAL_DIRS": str(self.folder),
            "TMPDIR": str(self.folder),
            "RECORDS_PER_TRIGGER_MAX": str(self.records_per_trigger),
            "TABLE_RECORDS_PER_TRIGGER_MAX": str(self.records_per_trigger),
            "TRIGGER_MILLISECONDS": "0",
            "ROW_AGE_SECONDS_MAX": "0",
            "NICENESS": "0",
        }

    @contextmanager
    def job(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """The job as a process, killed afterwards. Raises Failure if a process of it stays."""
        command = [sys.executable, str(Path(__file__).with_name("mortal_job.py")), *arguments]
        if self.without_epoch:
            command.append("--without-epoch")
        environment = {**self.environment, "HTTP_PORT": str(ports.find_free())}
        with (
            self.log.open("ab") as log,
            subprocess.Popen(command, env=environment, stdout=log, stderr=log) as process,
        ):
            try:
                yield process
            finally:
                children = [] if process.poll() is not None else get_children(process.pid)
                process.kill()
                _, alive = psutil.wait_procs(children, timeout=END_SECONDS_MAX)
        if alive:
            raise Failure(
                f"{len(alive)} processes of a killed job go on",
                details=[str(each) for each in alive],
            )

    @property
    def log(self) -> Path:
        return self.folder / "job.log"

    def strike(self, blow: Blow, chance: random.Random) -> None:
        """Let the job run until the blow falls, or until everything is read."""
        if blow in OF_THE_JOB:
            times = str(chance.randint(1, STEP_TIMES_MAX))
            with self.job(blow.value, times) as process:
                self.wait(process, until=lambda: process.poll() is not None or self.is_done)
        else:
            with self.job() as process:
                before = self.batches
                self.wait(process, until=lambda: self.batches > before or self.is_done)
                time.sleep(chance.uniform(0, 1))
                programs = supervision.programs(self.context.folder) or {}
                struck_at = self.batches
                os.kill(programs[blow.value].pid, signal.SIGKILL)
                self.wait(process, until=lambda: self.is_back)
                self.wait(process, until=lambda: self.batches > struck_at or self.is_done)
                if process.poll() is not None:
                    raise Failure(f"the job ended when {blow.value} was killed")

    def finish(self) -> None:
        """Run the job until everything is read."""
        while not self.is_done:
            with self.job() as process:
                self.wait(process, until=lambda: process.poll() is not None or self.is_done)

    def wait(self, process: subprocess.Popen[bytes], until: Callable[[], bool]) -> None:
        """Wait for a condition. Raises Failure when it takes too long."""
        deadline = time.monotonic() + PROGRESS_SECONDS_MAX
        while not until():
            if time.monotonic() > deadline:
                words = self.log.read_text(errors="replace")[-LOG_CHARACTERS_SHOWN:]
                raise Failure("the job makes no progress", details=words.splitlines())
            time.sleep(POLL_SECONDS)

    @property
    def is_back(self) -> bool:
        return bool(self.fetch("SELECT 1"))

    @property
    def batches(self) -> int:
        return len(self.fetch("SELECT 1 FROM batches"))

    @property
    def is_done(self) -> bool:
        """Whether the last record of each partition is read."""
        rows = self.fetch(READ_ENDS)
        ends = rows[0][0] if rows else {}
        last = self.records.group_by(["topic", "partition"]).aggregate([("offset", "max")])
        return all(
            ends.get(row["topic"], {}).get(str(row["partition"]), [0, 0])[1] > row["offset_max"]
            for row in last.to_pylist()
        )

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows; empty while the database is unavailable."""
        try:
            with psycopg.connect(self.dsn, connect_timeout=2) as connection:
                return connection.execute(sql).fetchall()
        except psycopg.OperationalError:
            return []

    def outcome(self) -> Outcome:
        with psycopg.connect(self.dsn) as connection:
            found = compare_with_oracle(connection, self.records)
            order = [row[0] for row in connection.execute(READ_ORDER)]
        if order != sorted(set(order)):
            found = replace(found, wrong=[*found.wrong, f"epochs do not increase: {order}"])
        return found


def get_children(pid: int) -> Sequence[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def main() -> int:
    arguments = parser().parse_args()
    began_at = time.monotonic()
    wrong = 0
    try:
        with throwaway_stack(StackSpec(processes=(POSTGRES, KAFKA))) as context:
            asyncio.run(topics.create(Brokers(context.address("kafka"))))
            for seed in range(arguments.first, arguments.first + arguments.seeds):
                blows = choose_blows(random.Random(seed))
                outcome = play(context, seed, arguments.orders, blows)
                show(f"seed {seed}, {', '.join(blows)}", outcome)
                wrong += len(outcome.wrong)
            tell_in_place("control: without the epoch")
            blind = play(context, 1, arguments.orders, [Blow.JOB_AFTER], without_epoch=True)
    except Failure as failure:
        complain(str(failure))
        for line in failure.details:
            complain(f"  {line}")
        return 1
    tell(f"without the epoch, killed after the commit: {len(blind.wrong)} wrong")
    write_figures(arguments.seeds, wrong, len(blind.wrong))
    seconds = time.monotonic() - began_at
    tell(f"{wrong} wrong cells of {arguments.seeds} seeds, after {duration(seconds)}")
    if not blind.wrong:
        complain("without the epoch nothing was wrong: this campaign cannot find errors")
    return 1 if wrong or not blind.wrong else 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m verification.crashes", description=__doc__)
    made.add_argument("--seeds", type=int, default=SEEDS)
    made.add_argument("--first", type=int, default=1, metavar="SEED")
    made.add_argument("--orders", type=int, default=ORDERS, help="of each seed")
    return made


def choose_blows(chance: random.Random) -> list[Blow]:
    """The job is killed before, inside and after a commit, and one of the servers as well."""
    blows = [*OF_THE_JOB, chance.choice([Blow.POSTGRES, Blow.KAFKA])]
    chance.shuffle(blows)
    return blows


def play(
    context: StackContext,
    seed: int,
    orders: int,
    blows: Sequence[Blow],
    *,
    batches: int = BATCHES,
    without_epoch: bool = False,
) -> Outcome:
    """Count the history of a seed during the blows. Raises Failure when it does not end."""
    servers = context.address("kafka")
    asyncio.run(empty_topics(servers))
    records = asyncio.run(publish(servers, RandomHistory(seed, orders)))
    folder = Path(context.folder.path) / f"job-{seed}-{len(blows)}"
    folder.mkdir()
    chance = random.Random(seed)
    with new_database(dsn(context, "postgres")) as database:
        asyncio.run(postgres.migrate(database, "analytics_spark"))
        trial = Trial(
            context=context,
            dsn=database,
            folder=folder,
            records=records,
            records_per_trigger=max(orders // batches, 1),
            without_epoch=without_epoch,
        )
        for blow in blows:
            tell_in_place(f"seed {seed}: {blow}")
            trial.strike(blow, chance)
        tell_in_place(f"seed {seed}: finishing")
        trial.finish()
        return trial.outcome()


def show(name: str, outcome: Outcome) -> None:
    tell(
        f"{name}: {outcome.batches} batches, {outcome.counted} orders, {outcome.cells} cells,"
        f" {len(outcome.wrong)} wrong",
        Tone.BAD if outcome.wrong else Tone.GOOD,
    )
    for line in outcome.wrong[:WRONG_SHOWN_MAX]:
        tell(f"  {line}")


def write_figures(seeds: int, wrong: int, blind: int) -> None:
    folder = RunFolder(Settings().run_dir)
    folder.create()
    found = [
        Figure(name="seeds", value=seeds, unit="seeds"),
        Figure(name="wrong", value=wrong, unit="cells"),
        Figure(name="wrong without the epoch", value=blind, unit="cells"),
    ]
    figures.write(folder, "crashes", found)
