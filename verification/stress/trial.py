"""One run of one seed: writers, relays and disturbances at once, then the verdict."""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from local_stack.stack_spec import StackContext
from shared.outbox.relay import CHECKPOINT_SECONDS, ROWS_MAX
from shared.runtime import postgres
from verification.stress import adversaries, disturbances, ledger, topic
from verification.stress.disturbances import Disturbed
from verification.stress.ledger import Entry, Memory, Verdict
from verification.stress.relays import Relays, open_relays

SLOW_SECONDS = 3.0
SLOW_PART = 0.1
"""A slow transaction takes SLOW_SECONDS, in a short run this part of it."""
RELAY_START_SECONDS_MAX = 120.0
POLL_SECONDS = 0.05
PATIENCE_SECONDS = 2.0
PATIENCE_AFTER_BLOWS_SECONDS = 60.0
"""After this time without a record the rest counts as lost. The broker or the relays can be
starting again, which takes them half a minute on a busy machine."""
SPARE_CONNECTIONS = 2

RELAY_CONNECTED = """
    SELECT EXISTS (
        SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'stress-relay-%'
    )
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What to run."""

    seed: int
    relay: str
    seconds: float
    writers: int
    streams: int
    is_calm: bool
    """Nothing is killed or frozen, so any repeated delivery is a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a trial; delays in seconds, sorted."""

    trial: Trial
    verdict: Verdict
    blows: int
    races_lost: int
    duplicates_bound: int
    delays: Sequence[float]
    delays_at_rest: Sequence[float]
    """Of commits after all disturbances, while the long transaction was open."""
    exit_codes: Sequence[int]
    """Unexpected exit codes of relays."""

    @property
    def is_good(self) -> bool:
        in_bounds = self.verdict.duplicates <= self.duplicates_bound
        return self.verdict.is_good and in_bounds and not self.exit_codes


async def run(trial: Trial, context: StackContext, database: str) -> Outcome:
    """Run a trial on an empty database; the topic can hold records of other trials."""
    await postgres.migrate(database, "shared")
    servers, memory = context.address("kafka"), Memory()
    log = context.folder.log_of("stress-relay")
    async with (
        topic.open_reader(servers) as reader,
        open_relays(trial.relay, database, servers, log) as running,
    ):
        await wait_until_relay_is_up(database)
        disturbed = await write_and_disturb(trial, context, database, memory, running)
        stored = await read_entries(database)
        outstanding = {entry for entry, _ in stored}

        def is_complete() -> bool:
            outstanding.difference_update(each.entry for each in reader.deliveries)
            return not outstanding

        patience = PATIENCE_SECONDS if trial.is_calm else PATIENCE_AFTER_BLOWS_SECONDS
        await reader.read_until(is_complete, patience)
        exit_codes = await running.stop()
        await reader.read_to_end()

    first = ledger.find_first_deliveries(reader.deliveries)
    delays = ledger.compute_delays(memory, first)
    peak = ledger.count_most_within((each.at for each in reader.deliveries), CHECKPOINT_SECONDS)
    return Outcome(
        trial=trial,
        verdict=ledger.judge(stored, memory, reader.deliveries, disturbed.struck_at),
        blows=len(disturbed.struck_at),
        races_lost=memory.races_lost,
        duplicates_bound=len(disturbed.struck_at) * (peak + ROWS_MAX),
        delays=sorted(delays.values()),
        delays_at_rest=sorted(
            delay
            for entry, delay in delays.items()
            if memory.committed_at[entry] > disturbed.at_rest_since
        ),
        exit_codes=exit_codes,
    )


async def wait_until_relay_is_up(database: str) -> None:
    """Returns when the first relay has connected, so that its start delays nothing."""
    connection = await asyncpg.connect(database)
    try:
        async with asyncio.timeout(RELAY_START_SECONDS_MAX):
            while not await connection.fetchval(RELAY_CONNECTED):  # noqa: ASYNC110
                await asyncio.sleep(POLL_SECONDS)
    finally:
        await connection.close()


async def write_and_disturb(
    trial: Trial, context: StackContext, database: str, memory: Memory, running: Relays
) -> Disturbed:
    chance = random.Random(trial.seed)
    plan = disturbances.CALM if trial.is_calm else disturbances.create_plan(chance, trial.seconds)
    connections_max = trial.writers + SPARE_CONNECTIONS
    async with (
        postgres.open_pool(database, name="stress", connections_max=connections_max) as pool,
        pool.acquire() as own,
    ):
        slow_seconds = min(SLOW_SECONDS, SLOW_PART * trial.seconds)
        streams = [UUID(int=chance.getrandbits(128)) for _ in range(trial.streams)]
        scene = adversaries.create_scene(pool, streams, memory, running.notify, slow_seconds)
        until = time.monotonic() + trial.seconds
        async with asyncio.TaskGroup() as tasks:
            disturbing = tasks.create_task(
                disturbances.carry_out(plan, running, context.folder, own)
            )
            tasks.create_task(adversaries.hold_open(scene, chance, until))
            for number in range(trial.writers):
                own_chance = random.Random(f"{trial.seed}/{number}")
                tasks.create_task(adversaries.write(scene, own_chance, until))
    return disturbing.result()


async def read_entries(database: str) -> list[tuple[Entry, str]]:
    """The event store's entries with their predecessors, by stream and version."""
    connection = await asyncpg.connect(database)
    try:
        rows = await connection.fetch(
            "SELECT stream_id, version, data FROM events ORDER BY stream_id, version"
        )
    finally:
        await connection.close()
    return [
        (
            Entry(
                stream_id=row["stream_id"],
                version=row["version"],
                digest=ledger.digest(row["data"].encode()),
            ),
            ledger.CODEC.decode("linked", row["data"], 1).predecessor,
        )
        for row in rows
    ]
