"""What a service's own role may do in its database: read and write rows, and change no facts.

The owner of the database runs the migrations. A service with a bug, or one that was broken into,
can neither rewrite what happened nor create or drop anything. What needs more is a function that
runs as the owner (SECURITY DEFINER), such as those that look after the partitions of the outbox.
"""

import asyncpg

RIGHTS = {
    "migrations": "SELECT",
    "generations": "SELECT",
    # Facts: what happened, what left because of it, and what people did.
    "events": "SELECT, INSERT",
    "outbox": "SELECT, INSERT",
    "parked_audit": "SELECT, INSERT",
}
OTHER_RIGHTS = "SELECT, INSERT, UPDATE, DELETE"

ROLE = "SELECT quote_ident(rolname) FROM pg_roles WHERE rolname = $1"

VIEW_RIGHTS = "SELECT"

# All but PostgreSQL's own.
SCHEMAS = """
    SELECT quote_ident(nspname) AS quoted
    FROM pg_namespace
    WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
"""

# Rights on a partitioned table reach its partitions; on a partition itself nobody needs any.
TABLES = """
    SELECT relname AS name, format('%I.%I', nspname, relname) AS quoted, relkind = 'v' AS is_view
    FROM pg_class
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
      AND relkind IN ('r', 'p', 'v') AND NOT relispartition
"""

ALL_BUT_TABLES = """
    REVOKE ALL ON SCHEMA {schema} FROM PUBLIC, {role};
    REVOKE ALL ON ALL SEQUENCES IN SCHEMA {schema} FROM PUBLIC, {role};
    REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC, {role};
    GRANT USAGE ON SCHEMA {schema} TO {role};
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role};
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role};
"""

TABLE = """
    REVOKE ALL ON {table} FROM PUBLIC, {role};
    GRANT {rights} ON {table} TO {role};
"""


READABLE = ("events", "publications")
"""What a reader of facts sees: what happened, and where it lies in its topic."""

ALL_OF_A_READER = """
    REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role};
    GRANT USAGE ON SCHEMA public TO {role};
"""


class NoSuchRole(Exception):
    """The role that shall have the rights does not exist; the message has its name."""


async def grant(connection: asyncpg.Connection, role: str) -> None:
    """Give a role its rights on all that is in the database now, and no others; safe to repeat.

    `connection` is the owner's.

    Raises:
        NoSuchRole: nothing was changed.
    """
    quoted = await quoted_role(connection, role)
    async with connection.transaction():
        for schema in await connection.fetch(SCHEMAS):
            await connection.execute(ALL_BUT_TABLES.format(schema=schema["quoted"], role=quoted))
        for table in await connection.fetch(TABLES):
            rights = VIEW_RIGHTS if table["is_view"] else RIGHTS.get(table["name"], OTHER_RIGHTS)
            await connection.execute(
                TABLE.format(table=table["quoted"], role=quoted, rights=rights)
            )


async def grant_reading(connection: asyncpg.Connection, role: str) -> None:
    """Let a role read the facts, and nothing else; safe to repeat. `connection` is the owner's.

    Raises:
        NoSuchRole: nothing was changed.
    """
    quoted = await quoted_role(connection, role)
    async with connection.transaction():
        await connection.execute(ALL_OF_A_READER.format(role=quoted))
        for table in await connection.fetch(TABLES):
            if table["name"] in READABLE:
                await connection.execute(f"GRANT SELECT ON {table['quoted']} TO {quoted}")


async def quoted_role(connection: asyncpg.Connection, role: str) -> str:
    quoted: str | None = await connection.fetchval(ROLE, role)
    if quoted is None:
        raise NoSuchRole(f"there is no role {role} that could be granted its rights")
    return quoted
