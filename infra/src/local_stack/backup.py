"""`backup` and `restore`: the event stores at one moment, and the secrets that their data need.

All else follows from the events: the topics are published again from them, and the hours counted
again (`republishing`).
"""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import asyncpg

from fetching.environment import inherit
from fetching.errors import Failure
from local_stack import issuer, republishing
from local_stack.logs import find_named_error
from local_stack.postgres import POSTGRES, READ_BY_RECONCILER, SUPERUSER, binaries, dsn
from local_stack.progress import Tone, tell
from local_stack.run_folder import RunFolder, read_json, write_json
from local_stack.settings import Settings
from local_stack.stack_spec import StackContext, StackSpec
from local_stack.status import as_found
from local_stack.tools import call_or_fail
from local_stack.up import runs, up_foundations

EVENT_STORES = READ_BY_RECONCILER
FORMAT = 1
MANIFEST = "backup.json"
SECRETS = "secrets.json"
ISSUER_KEY = "issuer-key.pem"
DUMP_SECONDS_MAX = 3600
RESTORE = "run `make clean`, then `make restore` again"
"""The repair of one that was interrupted before the event stores were there."""
LOCK_SECONDS_MAX = 10
"""How long a writer may be at work before the snapshots are taken."""

# Writers wait, in all databases at once, until each has its snapshot: no event of one service is in
# the backup without the event of another service that caused it.
LOCK = "LOCK TABLE streams IN SHARE ROW EXCLUSIVE MODE"
EXPORT = "SELECT pg_export_snapshot()"

# No partition is dropped that the snapshot has: pg_dump would not find it.
KEEP_PARTITIONS = "LOCK TABLE outbox IN ACCESS SHARE MODE"


def backup(settings: Settings, folder: Path) -> None:
    """Write the event stores and the secrets of a running stack to a new folder.

    Raises:
        Failure: nothing runs here, the folder exists, or a database could not be dumped.
    """
    context = as_found(settings)
    if not runs(context, POSTGRES):
        raise Failure("nothing runs here: `make up`, then again")
    if folder.exists():
        raise Failure(f"{folder} exists: name another folder")
    folder.mkdir(mode=0o700, parents=True)
    with removed_if_it_fails(folder):
        taken_at = asyncio.run(dump_all(context, folder))
        for name, source in secret_files(context.folder).items():
            copy_secret(source, folder / name)
        # Last: a folder without it is no backup.
        manifest = {"format": FORMAT, "taken_at": taken_at.isoformat(), "databases": EVENT_STORES}
        write_json(folder / MANIFEST, manifest)
    tell(f"{', '.join(EVENT_STORES)} as of {taken_at:%Y-%m-%d %H:%M:%S} UTC: {folder}", Tone.GOOD)


@contextmanager
def removed_if_it_fails(folder: Path) -> Iterator[None]:
    """Without the folder, the same command can be tried again."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder)
        raise


def secret_files(folder: RunFolder) -> Mapping[str, Path]:
    """Passwords and the key of personal data, and the key that signs tokens."""
    return {SECRETS: folder.secrets, ISSUER_KEY: issuer.private_key(folder)}


def copy_secret(source: Path, target: Path) -> None:
    target.touch(mode=0o600)
    shutil.copyfile(source, target)


async def dump_all(context: StackContext, folder: Path) -> datetime:
    """Dump each event store, all as of the moment that is returned."""
    async with snapshots(context) as (taken_at, names):
        for database, snapshot in names.items():
            file = folder / f"{database}.dump"
            file.touch(mode=0o600)
            await asyncio.to_thread(
                call_program,
                "pg_dump",
                "--format=custom",
                f"--snapshot={snapshot}",
                f"--file={file}",
                database_url=dsn(context, SUPERUSER, database),
            )
    return taken_at


@asynccontextmanager
async def snapshots(context: StackContext) -> AsyncIterator[tuple[datetime, Mapping[str, str]]]:
    """The name of a snapshot of each event store; they exist inside and are of one moment."""
    async with AsyncExitStack() as kept:
        readers = {each: await connect(context, each, kept) for each in EVENT_STORES}
        names = {}
        async with AsyncExitStack() as briefly:
            for database in EVENT_STORES:
                writer = await connect(context, database, briefly)
                await briefly.enter_async_context(writer.transaction())
                await writer.execute(LOCK)
            for database, reader in readers.items():
                await kept.enter_async_context(
                    reader.transaction(isolation="repeatable_read", readonly=True)
                )
                await reader.execute(KEEP_PARTITIONS)
                names[database] = await reader.fetchval(EXPORT)
            taken_at = datetime.now(UTC)
        yield taken_at, names


async def connect(
    context: StackContext, database: str, stack: AsyncExitStack
) -> asyncpg.Connection:
    connection = await asyncpg.connect(
        dsn(context, SUPERUSER, database),
        server_settings={"application_name": "backup", "lock_timeout": f"{LOCK_SECONDS_MAX}s"},
    )
    stack.push_async_callback(connection.close)
    return connection


def call_program(name: str, *arguments: str, database_url: str) -> None:
    """Run a program of PostgreSQL to its end. Raises Failure with the line that names the error."""
    url = urlsplit(database_url)
    # Every user of the machine can read a command line, but not an environment.
    public = url._replace(netloc=f"{url.username}@{url.hostname}:{url.port}").geturl()
    result = subprocess.run(
        [binaries() / name, *arguments, f"--dbname={public}"],
        env=inherit() | {"PGPASSWORD": unquote(url.password or "")},
        capture_output=True,
        text=True,
        timeout=DUMP_SECONDS_MAX,
    )
    if result.returncode != 0:
        lines = result.stderr.splitlines()
        raise Failure(f"{name} failed ({find_named_error(lines)})", details=lines)


def restore(spec: StackSpec, settings: Settings, folder: Path) -> None:
    """Start a new stack with the data of a backup.

    Raises:
        Failure: there are data here already, the folder holds no backup, or a step failed.
    """
    restore_event_stores(spec, settings, folder)
    republishing.republish(spec, settings)


def restore_event_stores(spec: StackSpec, settings: Settings, folder: Path) -> StackContext:
    """Start the servers of a new stack with the event stores and the secrets of a backup.

    Raises:
        Failure: as `restore`.
    """
    manifest = read_json(folder / MANIFEST)
    if not manifest or manifest["format"] != FORMAT:
        raise Failure(f"{folder} holds no complete backup: name another folder")
    run_folder = RunFolder(settings.run_dir)
    demand_empty(run_folder)
    run_folder.create()
    run_folder.begin(RESTORE)
    for name, target in secret_files(run_folder).items():
        copy_secret(folder / name, target)
    context = up_foundations(spec, settings)
    for database in manifest["databases"]:
        call_program(
            "pg_restore",
            "--single-transaction",
            "--exit-on-error",
            str(folder / f"{database}.dump"),
            database_url=dsn(context, SUPERUSER, database),
        )
        # The backup can be one of an earlier release.
        call_or_fail(spec, context, database, "migrate")
        call_or_fail(spec, context, database, "adopt-outbox")
        tell(f"{database:<16} restored", Tone.GOOD)
    run_folder.begin(republishing.REPUBLISH)
    return context


def demand_empty(folder: RunFolder) -> None:
    for name in ("postgres", "kafka", "spark", SECRETS):
        if (folder / name).exists():
            raise Failure(
                f"{folder.path} has data: move them away, or remove them with `make clean`"
            )
