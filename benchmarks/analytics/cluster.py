"""workers: orders per second with one and two workers of a Spark cluster, and without a cluster."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pyspark

from benchmarks import servers
from benchmarks.analytics import counting, shop_history
from benchmarks.analytics.counting import SeenBatch
from benchmarks.analytics.job_sizes import Backlog, Size
from benchmarks.analytics.shop_history import Totals
from benchmarks.analytics.true_cells import Cells
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from benchmarks.servers import Running
from fetching.errors import Failure
from local_stack import ports
from local_stack.footprint import family
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import HOST, StackContext, StackSpec
from shared.messaging import topics
from shared.runtime.brokers import Brokers
from shared.runtime.progress import tell_in_place

JAVA = Path(__file__).parents[2] / "analytics-spark" / "java.sh"
RESCALE_SECONDS_MAX = 300
EXECUTOR_MEMORY = "1g"
MEBIBYTE = 1 << 20
MICROSECONDS = 1_000_000

THREADS, ONE, TWO = "two threads of the job", "one worker", "two workers"

RATE = "orders"
CPU = "CPU per order"
MEMORY = "largest resident memory"
RESCALED = "rescale, from one partition of the state to two"


async def measure(context: StackContext, size: Size) -> list[Series]:
    """Count everything with threads of the job. Then, from the beginning, count the first half with
    one worker, change the number of partitions of the state from one to two, and count the rest
    with two workers. Raises Failure if a cell is wrong.

    CPU and memory are those of the job and of the workers together.
    """
    samples = Samples(list)
    await topics.create(Brokers(context.address("kafka")))
    orders = size.shared_backlog.orders
    tell_in_place(f"workers: publishing {orders:,} orders")
    history = await shop_history.fill(context.address("kafka"), replace(size, orders=orders))
    totals, cells = history.totals, history.cells()
    del history  # which has every order
    for number in range(1, size.rounds + 1):
        tell_in_place(f"workers: round {number} of {size.rounds}")
        await measure_threads(context, size.shared_backlog, totals, cells, samples)
        await measure_workers(context, size.shared_backlog, totals, cells, samples)
    return as_series(samples)


async def measure_threads(
    context: StackContext, backlog: Backlog, totals: Totals, cells: Cells, samples: Samples
) -> None:
    settings = counting.get_full_speed_settings(backlog.per_batch)
    async with counting.run_job(context, settings) as job:
        batches = await job.batches(counting.has_counted(backlog.orders))
        await job.demand_totals(totals)
        await job.demand_local_cells(cells)
    take(THREADS, batches, samples)


async def measure_workers(
    context: StackContext, backlog: Backlog, totals: Totals, cells: Cells, samples: Samples
) -> None:
    async with (
        counting.tables(context) as (dsn, connection),
        counting.folder(context) as own,
        master(context, own) as address,
        worker(context, own, address, core=0) as first,
    ):
        environment = {
            **counting.job_variables(context, dsn, own),
            **counting.get_full_speed_settings(backlog.per_batch),
        }
        shared = {
            **environment,
            "SPARK_MASTER": address,
            "SPARK_DRIVER_HOST": HOST,
            "SPARK_EXECUTOR_MEMORY": EXECUTOR_MEMORY,
            "SPARK_CONF_DIR": str(own),
        }
        alone = shared | {"SHUFFLE_PARTITIONS": "1"}
        async with counting.start_job(context, alone, own, connection, [first]) as job:
            batches = await job.batches(counting.has_counted(backlog.orders // 2))
            demand_executors([first])
        take(ONE, batches, samples)

        began_at = time.perf_counter()
        command = ["-m", "analytics_spark", "rescale", "2"]
        async with servers.python(context, command, environment) as rescale:
            await rescale.wait_until_finished(RESCALE_SECONDS_MAX)
        samples[RESCALED].append(time.perf_counter() - began_at)
        # What was counted while the job stopped, and by the rescale.
        batches += await job.new_batches(batches[-1].batch_id)
        rest = backlog.orders - sum(batch.counted for batch in batches)

        async with (
            worker(context, own, address, core=1) as second,
            counting.start_job(context, shared, own, connection, [first, second]) as job,
        ):
            batches = await job.batches(counting.has_counted(rest), after=batches[-1].batch_id)
            demand_executors([first, second])
            await job.demand_totals(totals)
            await job.demand_local_cells(cells)
        take(TWO, batches, samples)


def demand_executors(workers: Sequence[Running]) -> None:
    """Raises Failure if a worker has no process of the job: the others have counted alone."""
    for worker in workers:
        worker.demand_alive()
        if len(family(worker.pid)) == 1:
            raise Failure("a worker of Spark has no executor", details=worker.words.splitlines())


def take(name: str, batches: Sequence[SeenBatch], samples: Samples) -> None:
    """Without the first batches and the last one, which is not full."""
    begin, *measured = counting.select_steady(batches)
    orders = sum(batch.counted for batch in measured)
    found = {
        RATE: orders / (measured[-1].seen_at - begin.seen_at),
        CPU: (measured[-1].cpu_seconds - begin.cpu_seconds) / orders * MICROSECONDS,
        MEMORY: max(batch.resident_bytes for batch in batches) / MEBIBYTE,
    }
    for what, value in found.items():
        samples[get_name(name, what)].append(value)


def get_name(name: str, what: str) -> str:
    return f"{name}: {what}"


def as_series(samples: Samples) -> list[Series]:
    found = []
    for what, unit in ((RATE, "1/s"), (CPU, "µs"), (MEMORY, "MiB")):
        one = series(samples, get_name(ONE, what), unit)
        found += [
            series(samples, get_name(THREADS, what), unit),
            one,
            series(samples, get_name(TWO, what), unit, limit=one),
        ]
    return [*found, series(samples, RESCALED, "s")]


@asynccontextmanager
async def master(context: StackContext, own: Path) -> AsyncIterator[str]:
    """The address of a master of Spark that listens."""
    port = ports.find_free()
    arguments = ["Master", "--host", HOST, "--port", str(port), "--webui-port", "0"]
    environment = {
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }
    async with spark(context, own, arguments, environment) as running:
        async with servers.bounded(servers.READY_SECONDS_MAX, "to start Spark's master"):
            while ports.is_free(port):
                running.demand_alive()
                await asyncio.sleep(servers.POLL_SECONDS)
        yield f"spark://{HOST}:{port}"


@asynccontextmanager
async def worker(
    context: StackContext, own: Path, master: str, *, core: int
) -> AsyncIterator[Running]:
    """A worker with an executor of one core; where the system can, they run on this core alone."""
    folder = own / f"worker-{core}"
    folder.mkdir()
    arguments = ["Worker", "--host", HOST, "--webui-port", "0", "--cores", "1"]
    arguments += ["--memory", EXECUTOR_MEMORY, "--work-dir", str(folder), master]
    environment = {"SPARK_DAEMON_MEMORY": "128m", "SPARK_LOCAL_DIRS": str(folder)}
    async with AsyncExitStack() as stack:
        with on_core(core):
            running = await stack.enter_async_context(spark(context, own, arguments, environment))
        yield running


@asynccontextmanager
async def spark(
    context: StackContext, own: Path, arguments: Sequence[str], environment: Mapping[str, str]
) -> AsyncIterator[Running]:
    """A process of Spark's own cluster manager, stopped with what it has started."""
    programs = Path(sys.executable).parent
    java = own / "java"
    if not java.exists():
        (java / "bin").mkdir(parents=True)
        (java / "bin" / "java").symlink_to(JAVA)
    found = {
        "JAVA_HOME": str(java),
        "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
        # Of other installations of Spark, the environment may have these.
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_CONF_DIR": str(own),
        "SPARK_LOCAL_IP": HOST,
        **environment,
    }
    name, *options = arguments
    command = [
        str(programs / "spark-class"),
        f"org.apache.spark.deploy.{name.lower()}.{name}",
        *options,
    ]
    async with servers.process(context, command, found) as running:
        try:
            yield running
        finally:
            await running.stop()


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """What is started inside runs on this core alone, where the system can do that and has it."""
    before = os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else set()
    if core >= len(before):
        yield
        return
    os.sched_setaffinity(0, {sorted(before)[core]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


PART = Part(
    name="workers",
    summary=__doc__ or "",
    spec=StackSpec(processes=(POSTGRES, KAFKA)),
    measure=measure,
)
