"""A service's role reads and writes rows; what happened it can neither change nor remove."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import pytest

from local_stack.postgres import create_database, owner
from shared.inbox import parked
from shared.inbox.consumer import Consumer, Delivery
from shared.messaging.messages import Message
from shared.outbox import backlog, lease, outbox
from shared.outbox.outbox import Snapshot
from shared.projections import rebuild
from shared.projections.read_models import ReadModel
from shared.runtime import postgres, rights
from shared.runtime.identifiers import new_id
from shared.runtime.postgres import Connection
from shared.runtime.relay_notifier import RelayNotifier
from test_support.counter.counted_records import as_read
from test_support.counter.counter import TOPIC, counted, some_metadata, store_of
from test_support.raw_records import ignore_letters

REFUSED = [
    "UPDATE events SET data = '{}'",
    "DELETE FROM events",
    "TRUNCATE events",
    "DROP TABLE events",
    "ALTER TABLE events ADD COLUMN more integer",
    "UPDATE outbox SET value = ''",
    "DELETE FROM outbox",
    "TRUNCATE outbox_rest",
    "DELETE FROM outbox_rest",
    "DROP TABLE outbox_rest",
    "UPDATE parked_audit SET done_by = 'another'",
    "DELETE FROM parked_audit",
    "DELETE FROM migrations",
    "INSERT INTO migrations (name, sha256) VALUES ('mine', '')",
    "TRUNCATE streams",
    "DROP TABLE streams",
    "CREATE TABLE mine ()",
    "CREATE TEMPORARY TABLE mine ()",
    "CREATE SCHEMA mine",
    "CREATE FUNCTION mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "SELECT setval('outbox_position', 1)",
]

CONSUMER = "users-worker"


@dataclass(frozen=True, slots=True)
class Own:
    """A database of the stack's making, with its two roles."""

    name: str
    service: str
    owner: str


@contextmanager
def own_database(postgres_dsn: str) -> Iterator[Own]:
    """Dropped at the end, with its roles."""
    name = f"rights_{uuid4().hex}"
    roles = (name, owner(name))
    passwords = {role: f"password-of-{role}" for role in roles}
    address = postgres_dsn.partition("@")[2].rpartition("/")[0]

    async def with_superuser(*statements: str) -> None:
        connection = await asyncpg.connect(postgres_dsn)
        if not statements:
            await create_database(connection, name, passwords)
        for statement in statements:
            await connection.execute(statement)
        await connection.close()

    asyncio.run(with_superuser())
    try:
        yield Own(
            name, *(f"postgresql://{each}:{passwords[each]}@{address}/{name}" for each in roles)
        )
    finally:
        asyncio.run(
            with_superuser(
                f"DROP DATABASE {name} WITH (FORCE)", *(f"DROP ROLE {role}" for role in roles)
            )
        )


@pytest.fixture(scope="module")
def own(postgres_dsn: str) -> Iterator[Own]:
    with own_database(postgres_dsn) as own:
        asyncio.run(postgres.migrate(own.owner, "shared", service_role=own.name))
        yield own


@pytest.fixture
async def service(own: Own) -> AsyncIterator[asyncpg.Pool]:
    async with postgres.open_pool(own.service, name="test", connections_max=4) as pool:
        yield pool


@pytest.mark.parametrize("statement", REFUSED)
async def test_the_service_is_refused(service: asyncpg.Pool, statement: str) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await service.execute(statement)


async def test_the_owner_is_not_refused(own: Own) -> None:
    """The negative control: it is the missing right that stops the service."""
    connection = await asyncpg.connect(own.owner)
    for statement in REFUSED:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(statement)
        await transaction.rollback()
    await connection.close()


READ_BY_A_READER = {"events", "outbox", "relay", "parked_streams"}

NOT_FOR_A_READER = [
    "INSERT INTO events (stream_id) VALUES (gen_random_uuid())",
    "UPDATE events SET data = '{}'",
    "DELETE FROM events",
    "CREATE TABLE mine ()",
    "CREATE TEMPORARY TABLE mine ()",
]


@pytest.fixture
async def reader(own: Own, postgres_dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """A role that may read facts, as `migrate` lets it."""
    name = f"reader_of_{own.name}"
    superuser = await asyncpg.connect(postgres_dsn)
    await superuser.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'password-of-a-reader'")
    await superuser.execute(f"GRANT CONNECT ON DATABASE {own.name} TO {name}")
    await postgres.migrate(own.owner, "shared", service_role=own.name, reader_role=name)
    address = own.owner.partition("@")[2]
    connection = await asyncpg.connect(f"postgresql://{name}:password-of-a-reader@{address}")
    yield connection
    await connection.close()
    owners = await asyncpg.connect(own.owner)
    await owners.execute(f"REVOKE ALL ON SCHEMA public FROM {name}")
    await owners.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {name}")
    await owners.close()
    await superuser.execute(f"REVOKE ALL ON DATABASE {own.name} FROM {name}")
    await superuser.execute(f"DROP ROLE {name}")
    await superuser.close()


async def test_a_reader_of_facts_reads_them_and_nothing_else(
    reader: asyncpg.Connection,
) -> None:
    tables = await reader.fetch(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " AND relkind IN ('r', 'p', 'v') AND has_table_privilege(oid, 'SELECT')"
    )
    assert {row["relname"] for row in tables} == READ_BY_A_READER
    assert await reader.fetchval("SELECT count(*) FROM events") >= 0
    assert (await backlog.read(reader)).rows >= 0
    assert isinstance(await parked.count_streams(reader), dict)

    for statement in NOT_FOR_A_READER:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await reader.execute(statement)


async def test_rights_on_a_table_that_is_not_there_are_refused(own: Own) -> None:
    """A misspelt name would leave the table with the usual rights."""
    connection = await asyncpg.connect(own.owner)
    for grant in (rights.grant, rights.grant_reading):
        with pytest.raises(rights.UnknownTable, match="for evnets: no such table"):
            await grant(connection, own.name, {"evnets": "SELECT"})
    await connection.close()


async def test_another_service_s_database_is_closed(own: Own) -> None:
    for role in (own.service, own.owner):
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="CONNECT"):
            await asyncpg.connect(f"{role.rpartition('/')[0]}/users")


async def test_a_table_of_a_later_migration_is_granted_by_the_next_one(own: Own) -> None:
    connection = await asyncpg.connect(own.owner)
    await connection.execute("CREATE TABLE later (number integer)")
    await postgres.migrate(own.owner, "shared", service_role=own.name)
    await connection.close()

    connection = await asyncpg.connect(own.service)
    await connection.execute("INSERT INTO later VALUES (1)")
    await connection.execute("DELETE FROM later")
    await connection.close()


async def test_the_service_appends_and_its_relay_reads(service: asyncpg.Pool) -> None:
    counter = new_id()
    await store_of(service).append(counter, 0, counted(counter, 1, 2), metadata=some_metadata())

    async with service.acquire() as connection:
        taken = await lease.acquire(connection, new_id())  # type: ignore[arg-type]
        assert taken is not None
        held, progress = taken
        snapshot, rows = await outbox.poll(connection, progress.published, 10)  # type: ignore[arg-type]
        assert rows is not None
        assert [row.key for row in rows].count(str(counter).encode()) == 2
        done = outbox.RelayCheckpoint(Snapshot.parse(snapshot))
        await held.store(connection, done)  # type: ignore[arg-type]
        await held.release(connection)  # type: ignore[arg-type]


async def test_the_service_looks_after_the_partitions_of_its_outbox(service: asyncpg.Pool) -> None:
    past = datetime.now(UTC) - timedelta(hours=5)
    name = f"outbox_{past:%Y%m%d_%H}"

    assert await service.fetchval("SELECT create_outbox_partitions($1, 1)", past) == 1
    ended = await service.fetch("SELECT ended_outbox_partitions(now())")
    assert [row[0] for row in ended] == [name, "outbox_rest"]
    assert await service.fetchval("SELECT empty_outbox_partition($1)", name) is True
    assert await service.fetchval("SELECT drop_empty_outbox_partition($1)", name) is True


async def test_a_rebuild_without_the_owner_s_rights_is_one_line(own: Own) -> None:
    async def project(connection: Connection, messages: Sequence[Message]) -> None:
        raise AssertionError(messages)

    model = ReadModel(name="streams", topic=TOPIC, types=(), project=project)
    with pytest.raises(SystemExit, match="a rebuild needs the rights of the database's owner"):
        await rebuild.run(own.service, [], [model], only_check=True)


async def test_the_service_consumes(service: asyncpg.Pool) -> None:
    counter = new_id()
    await store_of(service).append(counter, 0, counted(counter, 1, 2), metadata=some_metadata())
    async with service.acquire() as connection:
        _, rows = await outbox.poll(connection, Snapshot(), 10)  # type: ignore[arg-type]
    records = [as_read(row) for row in rows or () if row.key == str(counter).encode()]
    numbers: list[int] = []

    async def react(connection: Connection, deliveries: Sequence[Delivery]) -> None:
        versions = [each.message.stream_version for each in deliveries]
        if 2 in versions:
            raise ValueError("poison")
        numbers.extend(versions)

    consumer = Consumer(
        CONSUMER, service, {TOPIC: {"counted": [react]}}, ignore_letters, RelayNotifier(None)
    )
    await consumer.take(records)

    assert set(numbers) == {1}
    [consumed] = await service.fetch("SELECT stream_id, version FROM consumed_versions")
    assert dict(consumed) == {"stream_id": counter, "version": 1}
    assert await service.fetchval("SELECT stream_id FROM parked_streams") == counter


async def test_a_database_of_before_there_were_owners_is_refused_in_one_line(
    postgres_dsn: str,
) -> None:
    """Its tables are the service's own: no right could be taken away."""
    name = f"rights_{uuid4().hex}"
    passwords = {role: "password" for role in (name, owner(name))}
    superuser = await asyncpg.connect(postgres_dsn)
    await superuser.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'password'")
    await superuser.execute(f"CREATE DATABASE {name} OWNER {name}")
    address = postgres_dsn.partition("@")[2].rpartition("/")[0]
    try:
        service = await asyncpg.connect(f"postgresql://{name}:password@{address}/{name}")
        await service.execute("CREATE TABLE migrations (name text PRIMARY KEY)")
        await service.close()
        await create_database(superuser, name, passwords)
        with pytest.raises(postgres.ChangedMigration, match="make clean"):
            await postgres.migrate(
                f"postgresql://{owner(name)}:password@{address}/{name}",
                "shared",
                service_role=name,
            )
    finally:
        await superuser.execute(f"DROP DATABASE {name} WITH (FORCE)")
        for role in passwords:
            await superuser.execute(f"DROP ROLE {role}")
        await superuser.close()
