"""pgbench: load on PostgreSQL by the client that uses the least CPU."""

import asyncio
import re
from dataclasses import dataclass

from benchmarks.servers import bounded
from fetching.errors import Failure
from local_stack.postgres import binaries

THREADS = 2
MORE_SECONDS_MAX = 60
"""How much longer than its seconds a run can take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`lag_milliseconds_max`: the latest start after it was due; None without a rate."""

    per_second: float
    lag_milliseconds_max: float | None


async def run(
    dsn: str, script: str, *, seconds: int, clients: int = 32, rate: int | None = None
) -> Outcome:
    """Repeat one transaction; with `rate`, at that rate per second, late or not.

    Raises:
        Failure: pgbench reports an error.
    """
    process = await asyncio.create_subprocess_exec(
        *(str(binaries() / "pgbench"), "--no-vacuum", "--protocol", "prepared"),
        *("--client", str(clients), "--jobs", str(THREADS), "--time", str(seconds)),
        *(("--rate", str(rate)) if rate else ()),
        *("--file", "-", dsn),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with bounded(seconds + MORE_SECONDS_MAX, "pgbench"):
            output, errors = await process.communicate(script.encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise Failure("pgbench failed", details=errors.decode().splitlines())
    return parse_outcome(output.decode())


def parse_outcome(output: str) -> Outcome:
    """What pgbench printed."""
    rate = re.search(r"^tps = ([0-9.]+)", output, re.M)
    lag = re.search(r"^rate limit schedule lag: avg [0-9.]+ \(max ([0-9.]+)\) ms", output, re.M)
    if rate is None:
        raise Failure("pgbench did not report its rate", details=output.splitlines())
    return Outcome(per_second=float(rate[1]), lag_milliseconds_max=float(lag[1]) if lag else None)
