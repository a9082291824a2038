"""Connections to PostgreSQL, and the migrations of a package's tables."""

import hashlib
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from shared.runtime import metrics, rights
from shared.runtime.logs import because

log = logging.getLogger(__name__)

Connection = asyncpg.Connection | PoolConnectionProxy
"""A connection of one's own, or one that a pool has lent."""

CONNECT_TIMEOUT_SECONDS = 10
COMMAND_TIMEOUT_SECONDS = 10
MIGRATION_LOCK_TIMEOUT_SECONDS = 30
REPAIR_LOCK_TIMEOUT_SECONDS = 5
"""How long a writer may be at work before the repair of an outbox begins."""
LOCK_TIMEOUT_SECONDS = 1
"""How long a statement waits for a row that another one is writing."""

UNAVAILABLE = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that was lost while a statement was given up
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,  # it is shutting down, or recovering
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,  # the database is being restored
    asyncpg.ReadOnlySQLTransactionError,  # it is a standby
    asyncpg.PostgresSystemError,  # its disk fails
)
"""Errors of the server or the connection, not of the statement: it cannot be executed now."""

MIGRATION_LOCK = 0x686F6D65
"""Key of the advisory lock that lets one migrator work at a time."""

CREATE_MIGRATIONS = """
    CREATE TABLE IF NOT EXISTS migrations (
        name text PRIMARY KEY,
        sha256 bytea NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )
"""

HASHES_ARE_KEPT = """
    SELECT EXISTS (
        SELECT FROM pg_attribute
        WHERE attrelid = 'migrations'::regclass AND attname = 'sha256' AND NOT attisdropped
    )
"""

IS_RESTORED = "SELECT is_restored()"

CONNECTIONS = metrics.Gauge(
    "db.client.connection.count",
    "{connection}",
    "Connections of a pool to PostgreSQL, by their state: idle or used",
    ["db.client.connection.pool.name", "db.client.connection.state"],
)
CONNECTIONS_MAX = metrics.Gauge(
    "db.client.connection.max",
    "{connection}",
    "Connections that a pool can have",
    ["db.client.connection.pool.name"],
)

APPLIED = "SELECT name, sha256 FROM migrations"

APPLY = "INSERT INTO migrations (name, sha256) VALUES ($1, $2)"


class Restored(Exception):
    """PostgreSQL was restored to an older moment than Kafka: run `make republish`."""


class ChangedMigration(Exception):
    """A migration's file is not what was applied; the message names it."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} was changed after it was applied here: put it back, or start again without"
            " the old data (`make clean`)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A file of SQL under the name by which a database remembers it."""

    name: str
    sql: str

    @property
    def sha256(self) -> bytes:
        return hashlib.sha256(self.sql.encode()).digest()


@asynccontextmanager
async def open_pool(dsn: str, *, name: str, connections_max: int) -> AsyncIterator[asyncpg.Pool]:
    """A pool of connections that PostgreSQL shows under `name`; closed at exit.

    A statement is planned once for each connection, without its values: a condition that only some
    values switch off, such as `$1 IS NULL OR id > $1`, would be planned as if it selected nothing
    by an index. Write a statement for each case, or `id > coalesce($1, …)`.
    """
    async with asyncpg.create_pool(
        dsn,
        min_size=1,
        max_size=connections_max,
        timeout=CONNECT_TIMEOUT_SECONDS,
        command_timeout=COMMAND_TIMEOUT_SECONDS,
        reset=keep_session,
        server_settings={
            "application_name": name,
            "timezone": "UTC",
            "jit": "off",
            "plan_cache_mode": "force_generic_plan",
            "lock_timeout": f"{LOCK_TIMEOUT_SECONDS}s",
        },
    ) as pool:
        with (
            CONNECTIONS.read_by(lambda: count_connections(pool, name)),
            CONNECTIONS_MAX.read_by(lambda: {(name,): pool.get_max_size()}),
        ):
            yield pool


def count_connections(pool: asyncpg.Pool, name: str) -> Mapping[metrics.Values, int]:
    """Count the connections of a pool by their state."""
    idle = pool.get_idle_size()
    return {(name, "idle"): idle, (name, "used"): pool.get_size() - idle}


@asynccontextmanager
async def connect_to_repair(dsn: str, name: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection for a command that locks the tables of a service; without a time-out of
    statements. PostgreSQL shows it under `name`; closed at exit."""
    connection = await asyncpg.connect(
        dsn,
        timeout=CONNECT_TIMEOUT_SECONDS,
        server_settings={
            "application_name": name,
            "timezone": "UTC",
            "lock_timeout": f"{REPAIR_LOCK_TIMEOUT_SECONDS}s",
        },
    )
    try:
        yield connection
    finally:
        await connection.close()


async def keep_session(connection: Connection) -> None:
    """What has to be done to a connection that goes back to its pool: nothing.

    By itself asyncpg would ask the server, after each use, to forget the session's settings, locks
    and cursors: one more round trip, a quarter of the throughput. No code here leaves any. It still
    rolls back what was left open.
    """


async def refuse_restored(connection: Connection) -> None:
    """Raises Restored: the database of an event store is older than what it has published."""
    if await connection.fetchval(IS_RESTORED):
        raise Restored(Restored.__doc__)


class RestoredGuard:
    """Calls `refuse_restored` once for each connection: a restore ends all of them."""

    def __init__(self) -> None:
        self._passed: set[int] = set()
        """The server's processes that serve connections which have passed, and are open."""

    async def check(self, connection: Connection) -> None:
        """Raises Restored, and PostgresError while the server is recovering."""
        server_process = connection.get_server_pid()
        if server_process in self._passed:
            return
        await refuse_restored(connection)
        self._passed.add(server_process)
        connection.add_termination_listener(lambda _: self._passed.discard(server_process))


async def attempt(
    connection: Connection, seconds_max: float, statement: str, *values: object
) -> str | None:
    """Execute what can also be done later, without making others wait.

    Returns its command tag, such as `DELETE 7`; None if it was given up.

    Raises:
        UNAVAILABLE: the server cannot be asked.
    """
    try:
        return await connection.execute(statement, *values, timeout=seconds_max)
    except asyncpg.LockNotAvailableError:
        pass
    except TimeoutError as error:
        log.warning("a statement was given up: %s", statement, extra=because(error))
    except UNAVAILABLE:
        raise
    except asyncpg.PostgresError as error:
        log.error("a statement failed: %s", statement, extra=because(error))
    return None


async def migrate(
    dsn: str,
    *packages: str,
    service_role: str | None = None,
    reader_role: str | None = None,
) -> list[str]:
    """Apply what is missing of the packages' `migrations/*.sql`, in order; return their names.

    `dsn` is the owner's. `service_role` gets its rights on all tables then, and `reader_role` the
    right to read facts, see `rights`. Safe to repeat and to run twice at once. Each file is one
    transaction, so a failing one leaves nothing behind.

    Raises:
        ChangedMigration: a file is not what was applied before; nothing was done.
        rights.NoSuchRole, rights.UnknownTable: no rights were granted.
    """
    migrations = [each for package in packages for each in list_migrations(package)]
    table_rights = rights.load_rights(packages)
    connection = await asyncpg.connect(dsn, timeout=CONNECT_TIMEOUT_SECONDS)
    try:
        await connection.execute(f"SET lock_timeout = '{MIGRATION_LOCK_TIMEOUT_SECONDS}s'")
        await connection.execute("SELECT pg_advisory_lock($1)", MIGRATION_LOCK)
        missing = await find_missing(connection, migrations)
        for migration in missing:
            await apply(connection, migration)
        if service_role is not None:
            await rights.grant(connection, service_role, table_rights.service)
        if reader_role is not None:
            await rights.grant_reading(connection, reader_role, table_rights.reader)
    finally:
        await connection.close()
    return [migration.name for migration in missing]


def list_migrations(package: str) -> list[Migration]:
    """A package's migrations in the order of their numbers."""
    files = resources.files(package).joinpath("migrations").iterdir()
    scripts = [file for file in files if file.name.endswith(".sql")]
    return [
        Migration(name=f"{package}/{file.name}", sql=file.read_text())
        for file in sorted(scripts, key=lambda file: file.name)
    ]


async def find_missing(
    connection: asyncpg.Connection, migrations: list[Migration]
) -> list[Migration]:
    """Those that the database does not have yet.

    Raises:
        ChangedMigration: an applied one has another content now, or its hash is not stored.
    """
    await connection.execute(CREATE_MIGRATIONS)
    if not await connection.fetchval(HASHES_ARE_KEPT):
        raise ChangedMigration("the table migrations")
    applied = {row["name"]: row["sha256"] for row in await connection.fetch(APPLIED)}
    for migration in migrations:
        if applied.get(migration.name, migration.sha256) != migration.sha256:
            raise ChangedMigration(migration.name)
    return [migration for migration in migrations if migration.name not in applied]


async def apply(connection: asyncpg.Connection, migration: Migration) -> None:
    async with connection.transaction():
        await connection.execute(APPLY, migration.name, migration.sha256)
        await connection.execute(migration.sql)
