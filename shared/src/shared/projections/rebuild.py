"""Read models made again from event 0, compared with the live ones, and put in their place.

The new tables are temporary ones of the same names: a projection finds them first, no other
connection sees them, and they go with the connection, whatever happens to it. What is put in place
is the difference, in one transaction, into the table that is there: readers never wait, and rights,
indexes and the prepared statements of other connections stay as they are.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from shared.eventsourcing.history import History, NotSettled, PastEvent, Stores, to_message
from shared.projections import versions
from shared.projections.read_models import ReadModel
from shared.projections.versions import UnknownVersion
from shared.runtime import postgres
from shared.runtime.progress import ProgressLine

LOCK_SECONDS_MAX = 5
"""How long the worker's transaction in hand may take before a rebuild is put in its place."""
CATCH_UP_SECONDS_MAX = 10
"""How long the live tables may lack what the rebuilt ones have: they follow the topics."""
CATCH_UP_POLL_SECONDS = 0.5

CONNECTION_SETTINGS = {
    "application_name": "rebuild",
    "timezone": "UTC",  # rows are hashed as text
    "jit": "off",
    "lock_timeout": f"{LOCK_SECONDS_MAX}s",
    "temp_buffers": "64MB",
}

CREATE = "CREATE TEMPORARY TABLE {table} (LIKE public.{table} INCLUDING ALL)"

# The same for the same rows, in whatever order they lie.
CONTENT = """
    SELECT count(*) AS rows,
           encode(sha256(coalesce(string_agg(hash, ''::bytea ORDER BY hash), '')), 'hex') AS hash
    FROM (SELECT sha256(convert_to(each::text, 'UTF8')) AS hash FROM {table} AS each) AS hashes
"""

LOCK = "LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE"

DELETE_WRONG = """
    DELETE FROM public.{table} AS live
    WHERE NOT EXISTS (SELECT FROM pg_temp.{table} AS rebuilt WHERE rebuilt::text = live::text)
"""

INSERT_RIGHT = """
    INSERT INTO public.{table}
    SELECT rebuilt.*
    FROM pg_temp.{table} AS rebuilt
    WHERE NOT EXISTS (SELECT FROM public.{table} AS live WHERE live::text = rebuilt::text)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What is in a table: how many rows, and a hash over all columns of all of them."""

    rows: int
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A read model as it is, and as the events make it."""

    table: str
    live: Content
    rebuilt: Content

    @property
    def is_equal(self) -> bool:
        return self.live == self.rebuilt


class Rebuild:
    """The read models as the events make them, on a connection of its own."""

    def __init__(
        self, connection: asyncpg.Connection, history: History, models: Sequence[ReadModel]
    ) -> None:
        self._connection = connection
        self._history = history
        self._models = models
        self._position = 0
        self.progress = ProgressLine()

    async def begin(self) -> None:
        """Make the empty tables."""
        for model in self._models:
            await self._connection.execute(CREATE.format(table=model.table))

    async def catch_up(self) -> None:
        """Take all events up to now.

        Raises:
            NotSettled: a writer does not end.
        """
        settled = await self._history.read_settled_position()
        async for page in self._history.read_pages(self._position, settled):
            async with self._connection.transaction():
                await self._take(page)
        self._position = settled

    async def _take(self, page: Sequence[PastEvent]) -> None:
        messages = [message for event in page if (message := to_message(event))]
        for model in self._models:
            its = [m for m in messages if m.topic == model.topic and m.type in model.types]
            if its:
                await model.project(self._connection, its)
        self.progress.add(len(page))

    async def compare(self) -> list[Comparison]:
        """Each table compared with the live one, as they are now."""
        return [
            Comparison(
                table=model.table,
                live=await self._content(f"public.{model.table}"),
                rebuilt=await self._content(f"pg_temp.{model.table}"),
            )
            for model in self._models
        ]

    async def _content(self, table: str) -> Content:
        row = await self._connection.fetchrow(CONTENT.format(table=table))
        assert row is not None  # an aggregate without GROUP BY always has a row
        return Content(**row)

    async def put_in_place(self, served_of: Sequence[ReadModel] = ()) -> list[Comparison]:
        """Replace the rows of the live tables by the new ones; return the comparison of before.

        With all read models of the service, `served_of`, these are served from then on.

        Meanwhile the worker waits. Its tables may be ahead of what was taken here, but not of the
        snapshot that begins after the lock, and all of that is taken. What comes later finds the
        rows as if the worker had written them: twice is once, late is nothing.

        Raises:
            asyncpg.LockNotAvailableError: a writer was at work for LOCK_SECONDS_MAX; nothing is
                changed.
        """
        tables = ", ".join(f"public.{model.table}" for model in self._models)
        async with self._connection.transaction(isolation="repeatable_read"):
            await self._connection.execute(LOCK.format(tables=tables))
            async for page in self._history.read_pages(self._position):
                await self._take(page)
            comparisons = await self.compare()
            for comparison in comparisons:
                if not comparison.is_equal:
                    await self._replace(comparison.table)
            for model in self._models if served_of else ():
                await versions.serve(self._connection, model, served_of)
        return comparisons

    async def _replace(self, table: str) -> None:
        for statement in ("ANALYZE pg_temp.{table}", DELETE_WRONG, INSERT_RIGHT):
            await self._connection.execute(statement.format(table=table))


@asynccontextmanager
async def open_rebuild(
    dsn: str, stores: Stores, models: Sequence[ReadModel]
) -> AsyncIterator[Rebuild]:
    """Empty tables next to the live ones, dropped at exit. `dsn` is the owner's.

    Raises:
        asyncpg.InsufficientPrivilegeError: the role may not make temporary tables.
    """
    connection = await asyncpg.connect(
        dsn, timeout=postgres.CONNECT_TIMEOUT_SECONDS, server_settings=CONNECTION_SETTINGS
    )
    try:
        rebuild = Rebuild(connection, History(connection, stores), models)
        await rebuild.begin()
        yield rebuild
    finally:
        await connection.close()


async def check(rebuild: Rebuild) -> list[Comparison]:
    """Compare until all is equal, at most CATCH_UP_SECONDS_MAX after the first comparison."""
    clock = asyncio.get_running_loop().time
    await rebuild.catch_up()
    deadline = clock() + CATCH_UP_SECONDS_MAX
    while True:
        comparisons = await rebuild.compare()
        if all(each.is_equal for each in comparisons) or clock() > deadline:
            return comparisons
        await asyncio.sleep(CATCH_UP_POLL_SECONDS)
        await rebuild.catch_up()


async def replace(rebuild: Rebuild, served_of: Sequence[ReadModel] = ()) -> list[Comparison]:
    """Put all events in place; return the comparison of before."""
    await rebuild.catch_up()
    await rebuild.catch_up()  # with what came in that time: the less is left, the less waits
    return await rebuild.put_in_place(served_of)


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare `rebuild`, for `run`."""
    text = "make the read models again from the events, and repair what differs"
    parser = commands.add_parser("rebuild", help=text, description=text)
    parser.add_argument(
        "--check", action="store_true", help="only compare; ends with 1 if not equal"
    )
    parser.add_argument(
        "--version", type=int, help="only the read model of this version; without --check, serve it"
    )
    versions.add_model(parser)


async def run(
    dsn: str,
    stores: Stores,
    models: Sequence[ReadModel],
    *,
    only_check: bool,
    version: int | None = None,
    name: str | None = None,
) -> None:
    """The command `rebuild`: prints what it found, and ends with 1 when a check finds a difference.

    With a version, only of the read model that has it, of this name, and it is served then.

    Raises:
        SystemExit: a difference, or one line, the reason why nothing was done.
    """
    chosen: Sequence[ReadModel] = models
    served_of: Sequence[ReadModel] = ()
    try:
        if version is not None or name is not None:
            chosen = [versions.select(models, version, name)]
            served_of = () if only_check else models
        async with open_rebuild(dsn, stores, chosen) as rebuild:
            comparisons = await (check(rebuild) if only_check else replace(rebuild, served_of))
            rebuild.progress.end()
    except UnknownVersion as error:
        sys.exit(f"hometown: nothing was rebuilt: {error}")
    except asyncpg.UndefinedTableError as error:
        sys.exit(f"hometown: run the command `migrate` first: {error}")
    except asyncpg.InsufficientPrivilegeError as error:
        sys.exit(f"hometown: a rebuild needs the rights of the database's owner: {error}")
    except (NotSettled, asyncpg.LockNotAvailableError) as error:
        sys.exit(f"hometown: the read models are as they were, try again: {error}")
    for comparison in comparisons:
        sys.stdout.write(f"{format_comparison(comparison, only_check)}\n")
    sys.stdout.write(f"{rebuild.progress.events} events, {rebuild.progress.per_second:,.0f}/s\n")
    if only_check and not all(each.is_equal for each in comparisons):
        sys.exit(1)
    if served_of:
        sys.stdout.write(f"{versions.format_served(chosen[0])}\n")


def format_comparison(comparison: Comparison, only_check: bool) -> str:
    """A line for people."""
    live, rebuilt = comparison.live, comparison.rebuilt
    if comparison.is_equal:
        return f"{comparison.table}: equal, {live.rows} rows, {live.hash}"
    verb = "differs" if only_check else "repaired"
    return (
        f"{comparison.table}: {verb}, {live.rows} rows {live.hash},"
        f" from the events {rebuilt.rows} rows {rebuilt.hash}"
    )
