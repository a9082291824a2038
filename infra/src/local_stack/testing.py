"""Real servers for tests: each in a folder of its own under the temporary folder, on free ports.

with throwaway_stack(StackSpec(processes=(POSTGRES, KAFKA))) as context:
    dsn(context, "users"), context.address("kafka")
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import asyncpg
import psutil

from local_stack import issuer, orphans
from local_stack.down import down
from local_stack.kafka import KAFKA
from local_stack.logs import choose_files, last, last_lines
from local_stack.postgres import POSTGRES, ROLES, dsn
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.stack_spec import StackContext, StackSpec
from local_stack.up import up
from shared.runtime import postgres

FOLDER_PREFIX = "hometown-test-"
FOLDER_SUFFIX = " of Zoë"
"""Paths that people have: each test of a stack shows that it runs there."""
DROPS_MAX = 6
LOG_LINES_SHOWN = 5
"""Of each process, after an error."""

NOT_DURABLE = ("-c", "fsync=off")
"""The data of a test does not have to survive a power cut; creating a database is five times as
fast."""

TEST_POSTGRES = replace(
    POSTGRES, command=lambda context: (*POSTGRES.command(context), *NOT_DURABLE)
)


@contextmanager
def throwaway_stack(spec: StackSpec) -> Iterator[StackContext]:
    """Everything is up and ready inside, and gone afterwards; an error shows what was logged."""
    sweep()
    settings = Settings(run_dir=new_folder(), ports="free", ports_given={})
    folder = RunFolder(settings.run_dir)
    try:
        yield up(spec, settings)
    except Exception:
        lines = last(choose_files(folder, None), LOG_LINES_SHOWN)
        sys.stdout.writelines(f"{line}\n" for line in lines)
        raise
    finally:
        down(spec, folder)
        folder.remove()


@contextmanager
def throwaway_postgres() -> Iterator[Mapping[str, str]]:
    """The DSN of each role by its name; `postgres` is the superuser's."""
    with throwaway_stack(StackSpec(processes=(TEST_POSTGRES,))) as context:
        yield {role: dsn(context, role) for role in ROLES}


@contextmanager
def throwaway_kafka() -> Iterator[str]:
    """The bootstrap server of a broker without topics."""
    with throwaway_stack(StackSpec(processes=(KAFKA,))) as context:
        yield context.address("kafka")


class Databases:
    """Databases of a test server; those with tables are copies of one that was migrated once."""

    def __init__(self, postgres_dsn: str) -> None:
        self._postgres_dsn = postgres_dsn
        self._templates: dict[tuple[str, ...], str] = {}

    @contextmanager
    def create(self, *packages: str) -> Iterator[str]:
        """The DSN of a new database with the tables of these packages; dropped at the end."""
        template = self._find_template(packages) if packages else "template1"
        name = f"test_{uuid4().hex}"
        copy = f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY'
        asyncio.run(execute(self._postgres_dsn, copy))
        try:
            yield self._get_dsn(name)
        finally:
            asyncio.run(drop_database(self._postgres_dsn, name))

    def _find_template(self, packages: tuple[str, ...]) -> str:
        if packages not in self._templates:
            name = f"template_{len(self._templates)}"
            asyncio.run(execute(self._postgres_dsn, f'CREATE DATABASE "{name}"'))
            asyncio.run(postgres.migrate(self._get_dsn(name), *packages))
            self._templates[packages] = name
        return self._templates[packages]

    def _get_dsn(self, name: str) -> str:
        return f"{self._postgres_dsn.rpartition('/')[0]}/{name}"


def new_database(postgres_dsn: str) -> AbstractContextManager[str]:
    """The DSN of an empty database; dropped at the end."""
    return Databases(postgres_dsn).create()


async def drop_database(dsn: str, name: str) -> None:
    """Those who use it are ended first: on a busy machine, not within the server's five seconds."""
    for attempt in range(DROPS_MAX, 0, -1):
        try:
            return await execute(dsn, f'DROP DATABASE "{name}" WITH (FORCE)')
        except asyncpg.ObjectInUseError:
            if attempt == 1:
                raise


async def execute(dsn: str, sql: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


def bearer(folder: RunFolder, role: str, subject: str | None = None) -> dict[str, str]:
    """The header of a caller in this role."""
    return {"Authorization": f"Bearer {issuer.token(folder, role, subject)}"}


def new_folder() -> Path:
    """A folder that carries the id of this process, and that PostgreSQL's own user can enter."""
    name = {"prefix": f"{FOLDER_PREFIX}{os.getpid()}-", "suffix": FOLDER_SUFFIX}
    folder = Path(tempfile.mkdtemp(**name))
    folder.chmod(0o711)
    return folder


def read_last_lines(more: Iterable[Path] = ()) -> dict[str, str]:
    """What the processes of this test run have logged last, by the names of their logs.

    Args:
        more: Logs outside the folders of this test run.
    """
    folders = Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}{os.getpid()}-*")
    logs = [log for folder in folders for log in choose_files(RunFolder(folder), None)] + [*more]
    return {log.name: "\n".join(last_lines(log, LOG_LINES_SHOWN)) for log in logs}


def sweep() -> None:
    """End and remove the stacks of test runs that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        owner = int(folder.name.removeprefix(FOLDER_PREFIX).partition("-")[0])
        if not psutil.pid_exists(owner):
            orphans.end(RunFolder(folder))
            RunFolder(folder).remove()
