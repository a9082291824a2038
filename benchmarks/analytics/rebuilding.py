"""rebuild: counting everything again into empty tables, compared with the live job."""

import time
from pathlib import Path

from benchmarks import servers
from benchmarks.analytics import counting, shop_history
from benchmarks.analytics.job_sizes import Size
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from fetching.errors import Failure
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import StackContext, StackSpec
from shared.messaging import topics
from shared.runtime.brokers import Brokers
from shared.runtime.progress import tell_in_place

AGAIN = Path(__file__).with_name("count_again.py")
AGAIN_SECONDS_MAX = 1_200

LIVE = "counted by the job, from its start to the last commit"
REBUILT = "counted again, from the start of the process to its end"
RATE = "orders counted again"


async def measure(context: StackContext, size: Size) -> list[Series]:
    samples = Samples(list)
    await topics.create(Brokers(context.address("kafka")))
    tell_in_place(f"rebuild: publishing {size.orders:,} orders")
    totals = (await shop_history.fill(context.address("kafka"), size)).totals
    speed = counting.get_full_speed_settings(size.per_batch)
    for number in range(1, size.rounds + 1):
        tell_in_place(f"rebuild: round {number} of {size.rounds}")
        async with counting.run_job(context, speed) as job:
            batches = await job.batches(counting.has_counted(totals.orders))
            await job.demand_totals(totals)
            cells = await counting.hash_cells(job.connection)
        samples[LIVE].append(batches[-1].seen_at - job.started_at)
        async with counting.tables(context) as (dsn, connection), counting.folder(context) as own:
            environment = {**counting.job_variables(context, dsn, own), **speed}
            began_at = time.perf_counter()
            async with servers.python(context, [str(AGAIN)], environment) as running:
                await running.wait_until_finished(AGAIN_SECONDS_MAX)
            seconds = time.perf_counter() - began_at
            if await counting.hash_cells(connection) != cells:
                raise Failure("counted again, the cells differ")
        samples[REBUILT].append(seconds)
        samples[RATE].append(totals.orders / seconds)
    live = series(samples, LIVE, "s")
    return [live, series(samples, REBUILT, "s", limit=live), series(samples, RATE, "1/s")]


PART = Part(
    name="rebuild",
    summary=__doc__ or "",
    spec=StackSpec(processes=(POSTGRES, KAFKA)),
    measure=measure,
)
