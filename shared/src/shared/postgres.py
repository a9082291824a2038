"""Connections to PostgreSQL, and the migrations of a package's tables."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources

import asyncpg

CONNECT_TIMEOUT_SECONDS = 10
COMMAND_TIMEOUT_SECONDS = 10
MIGRATION_LOCK_TIMEOUT_SECONDS = 30
LOCK_TIMEOUT_SECONDS = 1
"""How long a statement waits for a row that another one is writing."""

AWAY = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,  # it is shutting down, or recovering
)
"""Errors that say nothing about the statement: the server cannot be asked now."""

MIGRATION_LOCK = 0x686F6D65
"""Key of the advisory lock that lets one migrator work at a time."""

CREATE_MIGRATIONS = """
    CREATE TABLE IF NOT EXISTS migrations (
        name text PRIMARY KEY,
        applied_at timestamptz NOT NULL DEFAULT now()
    )
"""


@asynccontextmanager
async def open_pool(dsn: str, *, name: str, connections_max: int) -> AsyncIterator[asyncpg.Pool]:
    """A pool of connections that PostgreSQL shows under `name`; closed in the end."""
    async with asyncpg.create_pool(
        dsn,
        min_size=1,
        max_size=connections_max,
        timeout=CONNECT_TIMEOUT_SECONDS,
        command_timeout=COMMAND_TIMEOUT_SECONDS,
        server_settings={
            "application_name": name,
            "timezone": "UTC",
            "jit": "off",
            "lock_timeout": f"{LOCK_TIMEOUT_SECONDS}s",
        },
    ) as pool:
        yield pool


async def migrate(dsn: str, *packages: str) -> list[str]:
    """Apply what is missing of the packages' `migrations/*.sql`, in order; give the names applied.

    Safe to repeat and to run twice at once. Each file is one transaction, so a failing one leaves
    nothing behind.
    """
    connection = await asyncpg.connect(dsn, timeout=CONNECT_TIMEOUT_SECONDS)
    try:
        await connection.execute(f"SET lock_timeout = '{MIGRATION_LOCK_TIMEOUT_SECONDS}s'")
        await connection.execute("SELECT pg_advisory_lock($1)", MIGRATION_LOCK)
        await connection.execute(CREATE_MIGRATIONS)
        return [
            name
            for package in packages
            for name, sql in migrations_of(package)
            if await apply(connection, name, sql)
        ]
    finally:
        await connection.close()


def migrations_of(package: str) -> list[tuple[str, str]]:
    """(name, SQL) of a package's migrations in the order of their numbers."""
    files = resources.files(package).joinpath("migrations").iterdir()
    scripts = [file for file in files if file.name.endswith(".sql")]
    return [
        (f"{package}/{file.name}", file.read_text())
        for file in sorted(scripts, key=lambda file: file.name)
    ]


async def apply(connection: asyncpg.Connection, name: str, sql: str) -> bool:
    """Apply one migration unless that was done before."""
    async with connection.transaction():
        status = await connection.execute(
            "INSERT INTO migrations (name) VALUES ($1) ON CONFLICT DO NOTHING", name
        )
        if status == "INSERT 0 0":
            return False
        await connection.execute(sql)
        return True
