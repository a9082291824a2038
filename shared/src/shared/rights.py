"""What a service's own role may do in its database: read and write rows, and change no facts.

The owner of the database runs the migrations. A service with a bug, or one that was broken into,
can neither rewrite what happened nor create or drop anything. What needs more is a function that
runs as the owner (SECURITY DEFINER), such as those that look after the partitions of the outbox.
"""

import asyncpg

RIGHTS = {
    "migrations": "SELECT",
    # Facts: what happened, what left because of it, and what people did.
    "events": "SELECT, INSERT",
    "outbox": "SELECT, INSERT",
    "parked_audit": "SELECT, INSERT",
}
OTHER_RIGHTS = "SELECT, INSERT, UPDATE, DELETE"

ROLE = "SELECT quote_ident(rolname) FROM pg_roles WHERE rolname = $1"

# Rights on a partitioned table reach its partitions; on a partition itself nobody needs any.
TABLES = """
    SELECT relname AS name, quote_ident(relname) AS quoted
    FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
"""

ALL_BUT_TABLES = """
    REVOKE ALL ON SCHEMA public FROM PUBLIC, {role};
    REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM PUBLIC, {role};
    REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC, {role};
    GRANT USAGE ON SCHEMA public TO {role};
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role};
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO {role};
"""

TABLE = """
    REVOKE ALL ON {table} FROM PUBLIC, {role};
    GRANT {rights} ON {table} TO {role};
"""


class NoSuchRole(Exception):
    """The role that shall have the rights does not exist; the message has its name."""


async def grant(connection: asyncpg.Connection, role: str) -> None:
    """Give a role its rights on all that is in the database now, and no others; safe to repeat.

    `connection` is the owner's.

    Raises:
        NoSuchRole: nothing was changed.
    """
    quoted = await connection.fetchval(ROLE, role)
    if quoted is None:
        raise NoSuchRole(f"there is no role {role} that could be granted its rights")
    async with connection.transaction():
        await connection.execute(ALL_BUT_TABLES.format(role=quoted))
        for table in await connection.fetch(TABLES):
            rights = RIGHTS.get(table["name"], OTHER_RIGHTS)
            await connection.execute(
                TABLE.format(table=table["quoted"], role=quoted, rights=rights)
            )
