"""The job as a process, and its batches as they appear in the tables."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import asyncpg

from benchmarks import servers
from benchmarks.analytics import process_tree, true_cells
from benchmarks.analytics.shop_history import Totals
from benchmarks.analytics.true_cells import Cells
from benchmarks.servers import Running
from fetching import aot_cache
from fetching.errors import Failure
from fetching.jars import SPARK_JARS, fetch
from local_stack.needs import spark_variables
from local_stack.stack_spec import StackContext
from shared.runtime.progress import tell_in_place

POLL_SECONDS = 0.02
COUNT_SECONDS_MAX = 1_800
FULL_SHARE_MIN = 0.9
"""A batch is full with this share of the largest one: the last ones are smaller."""
WARMING_BATCHES = 2
"""The first ones load classes and start workers."""

NEW_BATCHES = """
    SELECT batch_id, counted, offsets
    FROM batches
    WHERE batch_id > $1
    ORDER BY batch_id
"""

SUMS = """
    SELECT coalesce(sum(purchases), 0)::bigint, coalesce(sum(quantity), 0)::bigint,
        coalesce(sum(cents), 0)::bigint
    FROM cells
"""

LOCAL_CELLS = """
    SELECT extract(epoch FROM hour)::bigint AS hour, item_type AS type, address AS place,
        count(DISTINCT user_id) AS users, sum(purchases)::bigint AS purchases,
        sum(quantity)::bigint AS quantity, sum(cents)::bigint AS cents
    FROM cells
    WHERE user_id <> ''
    GROUP BY hour, item_type, address
"""

READ_CELLS = """
    SELECT md5(coalesce(string_agg(cell::text, E'\\n' ORDER BY cell::text), ''))
    FROM cells AS cell
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenBatch:
    """A batch when it became visible to other connections, with the job's CPU time and memory."""

    batch_id: int
    counted: int
    offsets: str
    seen_at: float
    cpu_seconds: float
    resident_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A running job, its folder, and a connection to its tables.

    `workers` are the processes of a cluster that compute for it."""

    running: Running
    workers: Sequence[Running] = ()
    started_at: float
    folder: Path
    connection: asyncpg.Connection

    async def batches(
        self,
        until: Callable[[Sequence[SeenBatch]], bool],
        seconds_max: float = COUNT_SECONDS_MAX,
        after: int = -1,
    ) -> list[SeenBatch]:
        """All batches after the one with the id `after` until `until`. Raises Failure after
        `seconds_max`."""
        seen: list[SeenBatch] = []
        async with servers.bounded(seconds_max, "to count"):
            while not until(seen):
                for each in (self.running, *self.workers):
                    each.demand_alive()
                seen += await self.new_batches(seen[-1].batch_id if seen else after)
                await asyncio.sleep(POLL_SECONDS)
        return seen

    async def new_batches(self, after: int) -> list[SeenBatch]:
        rows = await self.connection.fetch(NEW_BATCHES, after)
        if not rows:
            return []
        seen_at = time.time()
        pids = [running.pid for running in (self.running, *self.workers)]
        used = sum(map(process_tree.cpu_seconds, pids))
        resident = sum(map(process_tree.resident_bytes, pids))
        return [
            SeenBatch(
                batch_id=row["batch_id"],
                counted=row["counted"],
                offsets=row["offsets"],
                seen_at=seen_at,
                cpu_seconds=used,
                resident_bytes=resident,
            )
            for row in rows
        ]

    async def demand_totals(self, totals: Totals) -> None:
        """Raises Failure unless the sums of all cells are right: a wrong answer is not measured.

        `make differential` checks the cells one by one.
        """
        (found,) = (tuple(row) for row in await self.connection.fetch(SUMS))
        right = (totals.orders, totals.quantity, totals.cents)
        if found != right:
            raise Failure(f"purchases, quantity and cents are {found} instead of {right}")

    async def demand_local_cells(self, right: Cells) -> None:
        """Raises Failure unless the local cells are right: they are those with a user."""
        rows = await self.connection.fetch(LOCAL_CELLS)
        if wrong := true_cells.count_wrong(true_cells.to_cells(map(dict, rows)), right):
            raise Failure(f"{wrong} cells are wrong: `make differential` looks for the cause")


def has_counted(orders: int) -> Callable[[Sequence[SeenBatch]], bool]:
    """A condition: this number of orders is in the cells."""
    return lambda seen: sum(batch.counted for batch in seen) >= orders


@asynccontextmanager
async def run_job(context: StackContext, settings: Mapping[str, str]) -> AsyncIterator[Job]:
    """The job on empty tables with a new checkpoint, from the beginning of the topics.

    `settings` are environment variables in addition to those of the stack.
    """
    async with tables(context) as (dsn, connection), folder(context) as own:
        environment = {**job_variables(context, dsn, own), **settings}
        async with start_job(context, environment, own, connection) as job:
            yield job


@asynccontextmanager
async def start_job(
    context: StackContext,
    environment: Mapping[str, str],
    own: Path,
    connection: asyncpg.Connection,
    workers: Sequence[Running] = (),
) -> AsyncIterator[Job]:
    """The job with the checkpoint and the tables that it has; stopped at the end of the block."""
    started_at = time.time()
    async with servers.python(context, ["-m", "analytics_spark", "job"], environment) as running:
        yield Job(
            running=running,
            workers=workers,
            started_at=started_at,
            folder=own,
            connection=connection,
        )
        await running.stop()


@asynccontextmanager
async def tables(context: StackContext) -> AsyncIterator[tuple[str, asyncpg.Connection]]:
    """The DSN of empty tables, and a connection to them."""
    async with (
        servers.database(context, "analytics_spark") as dsn,
        servers.connected(dsn) as connection,
    ):
        yield dsn, connection


@asynccontextmanager
async def folder(context: StackContext) -> AsyncIterator[Path]:
    """A new folder, removed afterwards."""
    own = context.folder / f"bench-{uuid4().hex}"
    (own / "tmp").mkdir(parents=True)
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)


def job_variables(context: StackContext, dsn: str, own: Path) -> dict[str, str]:
    """The job's environment variables in the stack, with tables and a folder for one run."""
    fetch(SPARK_JARS, context.settings, tell_in_place)
    aot_cache.make(context.settings, tell_in_place)
    return {
        "ENVIRONMENT": "development",
        **servers.settings_of_process(context, dsn),
        **spark_variables(context),
        "CHECKPOINT_DIR": str(own / "checkpoint"),
        "SPARK_LOCAL_DIRS": str(own / "local"),
        "TMPDIR": str(own / "tmp"),
    }


def get_full_speed_settings(per_batch: int) -> dict[str, str]:
    """Settings for batches of this size without pauses, and with the priority of its peers. A job
    with a backlog does not rest, so that does not have to be set."""
    return {
        "RECORDS_PER_TRIGGER_MAX": str(per_batch),
        "TRIGGER_MILLISECONDS": "0",
        "NICENESS": "0",
    }


async def hash_cells(connection: asyncpg.Connection) -> str:
    """A hash of all cells."""
    found: str = await connection.fetchval(READ_CELLS)
    return found


def select_steady(batches: Sequence[SeenBatch]) -> Sequence[SeenBatch]:
    """The batches from the end of the warm-up, where the clock starts, to the last full one."""
    largest = max(batch.counted for batch in batches)
    full = [at for at, batch in enumerate(batches) if batch.counted >= FULL_SHARE_MIN * largest]
    begin = min(WARMING_BATCHES, len(batches) - 1) - 1
    return batches[max(begin, 0) : max(full[-1], begin + 1) + 1]
