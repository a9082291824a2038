"""The job as a process, and its batches as they appear in the table that people read."""

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
from benchmarks.analytics import process_tree
from benchmarks.analytics.shop_history import Totals
from benchmarks.servers import Running
from fetching import class_archive
from fetching.errors import Failure
from fetching.jars import SPARK_JARS, fetch
from local_stack.needs import spark_variables
from local_stack.stack_spec import StackContext
from shared.runtime.progress import tell_in_place

POLL_SECONDS = 0.02
COUNT_SECONDS_MAX = 1_800
FULL_SHARE_MIN = 0.9
"""Of the largest batch: those at the end of the topics are smaller."""
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

READ_CELLS = """
    SELECT md5(coalesce(string_agg(cell::text, E'\\n' ORDER BY cell::text), ''))
    FROM cells AS cell
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch when it became visible to others; CPU and memory of the job's processes by then."""

    batch_id: int
    counted: int
    offsets: str
    seen_at: float
    cpu_seconds: float
    resident_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job that runs, the folder that it writes to, and its tables."""

    running: Running
    started_at: float
    folder: Path
    connection: asyncpg.Connection

    async def batches(
        self, until: Callable[[Sequence[Batch]], bool], seconds_max: float = COUNT_SECONDS_MAX
    ) -> list[Batch]:
        """All from the first one on, until there are enough. Raises Failure if they do not come."""
        seen: list[Batch] = []
        async with servers.bounded(seconds_max, "to count"):
            while not until(seen):
                self.running.demand_alive()
                seen += await self.new_batches(seen[-1].batch_id if seen else -1)
                await asyncio.sleep(POLL_SECONDS)
        return seen

    async def new_batches(self, after: int) -> list[Batch]:
        rows = await self.connection.fetch(NEW_BATCHES, after)
        if not rows:
            return []
        seen_at, pid = time.time(), self.running.pid
        used, resident = process_tree.cpu_seconds(pid), process_tree.resident_bytes(pid)
        return [
            Batch(
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
        """Raises Failure unless all cells together are what was sold: a wrong answer is no figure.

        Which cells they are is another question, see `make differential`.
        """
        (found,) = (tuple(row) for row in await self.connection.fetch(SUMS))
        right = (totals.orders, totals.quantity, totals.cents)
        if found != right:
            raise Failure(f"purchases, quantity and cents are {found} instead of {right}")


def counted(orders: int) -> Callable[[Sequence[Batch]], bool]:
    """Until so many orders are in the cells."""
    return lambda seen: sum(batch.counted for batch in seen) >= orders


@asynccontextmanager
async def counting(context: StackContext, settings: Mapping[str, str]) -> AsyncIterator[Job]:
    """The job on empty tables with a new checkpoint, from the beginning of the topics.

    `settings` are environment variables beside those that the stack gives it.
    """
    async with tables(context) as (dsn, connection), folder(context) as own:
        environment = {**job_variables(context, dsn, own), **settings}
        started_at = time.time()
        async with servers.python(
            context, ["-m", "analytics_spark", "job"], environment
        ) as running:
            yield Job(running=running, started_at=started_at, folder=own, connection=connection)
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
    """A new folder; gone afterwards, with its disk space."""
    own = context.folder / f"bench-{uuid4().hex}"
    (own / "tmp").mkdir(parents=True)
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)


def job_variables(context: StackContext, dsn: str, own: Path) -> dict[str, str]:
    """What the stack tells the job, but with tables and a folder for one run."""
    fetch(SPARK_JARS, context.settings, tell_in_place)
    class_archive.make(context.settings, tell_in_place)
    return {
        "ENVIRONMENT": "development",
        **servers.settings_of_process(context, dsn),
        **spark_variables(context),
        "CHECKPOINT_DIR": str(own / "checkpoint"),
        "SPARK_LOCAL_DIRS": str(own / "local"),
        "TMPDIR": str(own / "tmp"),
    }


def at_full_speed(per_batch: int) -> dict[str, str]:
    """Settings that make batches as large as this, one right after the other."""
    return {"RECORDS_PER_TRIGGER_MAX": str(per_batch), "TRIGGER_MILLISECONDS": "0"}


async def cells(connection: asyncpg.Connection) -> str:
    """One value for what is in the cells."""
    found: str = await connection.fetchval(READ_CELLS)
    return found


def steady(batches: Sequence[Batch]) -> Sequence[Batch]:
    """From the last batch of the warm-up, when the clock starts, to the last full one."""
    largest = max(batch.counted for batch in batches)
    full = [at for at, batch in enumerate(batches) if batch.counted >= FULL_SHARE_MIN * largest]
    begin = min(WARMING_BATCHES, len(batches) - 1) - 1
    return batches[max(begin, 0) : max(full[-1], begin + 1) + 1]
