"""What a service's own role can do in its database: read and write rows, and change no facts.

The owner of the database runs the migrations. A service with a bug, or one that was broken into,
can neither rewrite what happened nor create or drop anything. What needs more is a function that
runs as the owner (SECURITY DEFINER), such as those that manage the partitions of the outbox.

Next to its migrations a package declares what is narrower than that, in `migrations/rights.toml`:

    [service]
    events = "SELECT, INSERT"

    [reader]
    events = "SELECT"
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, ClassVar, Literal

import asyncpg
from pydantic import ConfigDict, TypeAdapter

FILE = "rights.toml"
OTHER_RIGHTS = "SELECT, INSERT, UPDATE, DELETE"
OWN_RIGHTS = {"migrations": "SELECT"}
"""On the one table that no migration creates (see `postgres`)."""

ROLE = "SELECT quote_ident(rolname) FROM pg_roles WHERE rolname = $1"

VIEW_RIGHTS = "SELECT"

# All but PostgreSQL's own.
SCHEMAS = """
    SELECT quote_ident(nspname) AS quoted
    FROM pg_namespace
    WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
"""

# Rights on a partitioned table reach its partitions; on a partition itself none are needed.
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


ALL_OF_A_READER = """
    REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role};
    GRANT USAGE ON SCHEMA public TO {role};
"""


class NoSuchRole(Exception):
    """The role that is granted the rights does not exist; the message has its name."""


class UnknownTable(Exception):
    """Rights are declared for a table that the database does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRights:
    """The rights of the service's role and of the reader, by the name of a table."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    service: Mapping[str, Literal["SELECT", "SELECT, INSERT"]] = field(default_factory=dict)
    reader: Mapping[str, Literal["SELECT"]] = field(default_factory=dict)


RIGHTS = TypeAdapter(TableRights)


def load_rights(packages: Iterable[str]) -> TableRights:
    """What the packages declare next to their migrations; most tables need no declaration.

    Raises:
        pydantic.ValidationError: a file has an unknown key, or a right that is not for it.
    """
    service: dict[str, Any] = dict(OWN_RIGHTS)
    reader: dict[str, Any] = {}
    for package in packages:
        file = resources.files(package).joinpath("migrations", FILE)
        if file.is_file():
            declared = RIGHTS.validate_python(tomllib.loads(file.read_text()))
            service |= declared.service
            reader |= declared.reader
    return TableRights(service=service, reader=reader)


async def grant(connection: asyncpg.Connection, role: str, rights: Mapping[str, str]) -> None:
    """Give a role its rights on all that is in the database now, and no others; safe to repeat.

    `connection` is the owner's; `rights` are those on tables that it cannot write freely.

    Raises:
        NoSuchRole, UnknownTable: nothing was changed.
    """
    quoted = await quoted_role(connection, role)
    tables = await find_tables(connection, rights)
    async with connection.transaction():
        for schema in await connection.fetch(SCHEMAS):
            await connection.execute(ALL_BUT_TABLES.format(schema=schema["quoted"], role=quoted))
        for table in tables:
            usual = VIEW_RIGHTS if table["is_view"] else OTHER_RIGHTS
            held = rights.get(table["name"], usual)
            await connection.execute(TABLE.format(table=table["quoted"], role=quoted, rights=held))


async def grant_reading(
    connection: asyncpg.Connection, role: str, rights: Mapping[str, str]
) -> None:
    """Give a role these rights on tables and nothing else; safe to repeat.

    `connection` is the owner's.

    Raises:
        NoSuchRole, UnknownTable: nothing was changed.
    """
    quoted = await quoted_role(connection, role)
    tables = await find_tables(connection, rights)
    async with connection.transaction():
        await connection.execute(ALL_OF_A_READER.format(role=quoted))
        for table in tables:
            if table["name"] in rights:
                held = rights[table["name"]]
                await connection.execute(f"GRANT {held} ON {table['quoted']} TO {quoted}")


async def find_tables(connection: asyncpg.Connection, named: Iterable[str]) -> list[asyncpg.Record]:
    """All tables and views. Raises UnknownTable if a named one is not among them."""
    tables = await connection.fetch(TABLES)
    if missing := set(named) - {table["name"] for table in tables}:
        raise UnknownTable(f"rights are declared for {', '.join(sorted(missing))}: no such table")
    return list(tables)


async def quoted_role(connection: asyncpg.Connection, role: str) -> str:
    quoted: str | None = await connection.fetchval(ROLE, role)
    if quoted is None:
        raise NoSuchRole(f"there is no role {role} that could be granted its rights")
    return quoted
