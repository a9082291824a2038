"""A worker that consumes counters, as a process of its own."""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from local_stack import ports
from test_support.waits import HANGS_AFTER_SECONDS

MAIN = Path(__file__).parents[2] / "shared" / "tests" / "integration" / "worker_main.py"


@asynccontextmanager
async def worker(database: str, kafka_servers: str, folder: Path) -> AsyncIterator[Process]:
    """Runs inside; what it logs is added to `worker.log` in the folder."""
    environment = os.environ | {
        "DATABASE_URL": database,
        "KAFKA_BOOTSTRAP_SERVERS": kafka_servers,
        "HTTP_PORT": str(ports.find_free()),
    }
    with (folder / "worker.log").open("ab") as file:
        process = await asyncio.create_subprocess_exec(
            sys.executable, MAIN, folder, env=environment, stderr=file
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), HANGS_AFTER_SECONDS)
