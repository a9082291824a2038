"""Versions of a read model: a new one is filled next to the old one, and then it is served.

Each has a table, a module and a number of its own, and the worker fills all that are in
READ_MODELS. A rebuild fills a new one with the past, and serves it from the same transaction on;
`switch` leads back to one that was served before, and forward again. Nothing is renamed, so a
reader that has chosen a version a moment before finds its table.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TypeVar

import asyncpg

from shared.projections.read_models import ReadModel
from shared.runtime import postgres
from shared.runtime.postgres import Connection

Reader = TypeVar("Reader")

NOTED = """
    SELECT version
    FROM served_versions
    WHERE read_model = $1 AND version = ANY ($2::integer[])
    ORDER BY number DESC
    LIMIT 1
"""

NOTE = "INSERT INTO served_versions (read_model, version) VALUES ($1, $2)"

NOTE_FIRST = """
    INSERT INTO served_versions (read_model, version)
    SELECT $1, $2
    WHERE NOT EXISTS (SELECT FROM served_versions WHERE read_model = $1)
"""

FORGET = """
    DELETE FROM served_versions
    WHERE (read_model, version) NOT IN (SELECT * FROM unnest($1::text[], $2::integer[]))
"""


class UnknownVersion(Exception):
    """What is asked for is not one version of a read model that has several."""


class NotServedBefore(Exception):
    """The version was not served since all workers fill it, so it may lack something."""


async def choose(pool: asyncpg.Pool, name: str, readers: Mapping[int, Reader]) -> Reader:
    """Return what reads the version of a read model that is served; `readers` are by version.

    A release that lacks that version, because it is older, reads the last one before it that was
    served; without any, the first one is read.
    """
    noted: int | None = await pool.fetchval(NOTED, name, list(readers))
    return readers[min(readers) if noted is None else noted]


def select(models: Sequence[ReadModel], version: int | None, name: str | None = None) -> ReadModel:
    """Return the read model with a version, among those that have several.

    Raises:
        UnknownVersion: there is none, or the name is missing that says which.
    """
    known = {each.name: list_versions(models, each.name) for each in models}
    several = [each for each in models if len(known[each.name]) > 1]
    found = [each for each in several if each.version == version and name in (None, each.name)]
    if len(found) == 1:
        return found[0]
    if found:
        names = " or ".join(f"model={each.name}" for each in found)
        raise UnknownVersion(f"several read models have a version {version}: add {names}")
    versions = ", ".join(f"{each} {' and '.join(map(str, known[each]))}" for each in known)
    raise UnknownVersion(
        f"no read model that has several versions has this one; there are {versions or 'none'}"
    )


def list_versions(models: Sequence[ReadModel], name: str) -> list[int]:
    """Return the versions of a read model."""
    return [each.version for each in models if each.name == name]


async def serve(connection: Connection, model: ReadModel, models: Sequence[ReadModel]) -> None:
    """Serve a version from the end of the transaction on; `models` are all of the service."""
    await connection.execute(NOTE_FIRST, model.name, min(list_versions(models, model.name)))
    await connection.execute(NOTE, model.name, model.version)


async def switch(connection: Connection, model: ReadModel, models: Sequence[ReadModel]) -> None:
    """Serve a version that was served before; `models` are all of the service.

    Raises:
        NotServedBefore: it was not; nothing was changed.
    """
    async with connection.transaction():
        if await connection.fetchval(NOTED, model.name, [model.version]) is None:
            raise NotServedBefore(
                f"version {model.version} of {model.name} was not served before, and may lack"
                f" something: `make rebuild` with version={model.version} fills and serves it"
            )
        await serve(connection, model, models)


async def forget_unfilled(pool: asyncpg.Pool, models: Sequence[ReadModel]) -> None:
    """Forget the versions that a worker does not fill: they lack what it consumes.

    So a version of a release that was taken back is neither served nor switched to when the release
    comes again.
    """
    names, numbers = [each.name for each in models], [each.version for each in models]
    await pool.execute(FORGET, names, numbers)


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare `switch`, for `run`."""
    text = "serve another version of a read model, which was served before"
    parser = commands.add_parser("switch", help=text, description=text)
    parser.add_argument("version", type=int)
    add_model(parser)


def add_model(parser: argparse.ArgumentParser) -> None:
    """Declare which read model has the version."""
    parser.add_argument("--model", metavar="NAME", help="where several have this version")


async def run(dsn: str, models: Sequence[ReadModel], version: int, name: str | None = None) -> None:
    """The command `switch`: prints what is served now. `dsn` is the owner's.

    Raises:
        SystemExit: one line, the reason why nothing was done.
    """
    async with postgres.connect_to_repair(dsn, "switch") as connection:
        try:
            model = select(models, version, name)
            await switch(connection, model, models)
        except (UnknownVersion, NotServedBefore) as error:
            sys.exit(f"hometown: the same version is served as before: {error}")
        except asyncpg.InsufficientPrivilegeError as error:
            sys.exit(f"hometown: a switch needs the rights of the database's owner: {error}")
        except asyncpg.UndefinedTableError as error:
            sys.exit(f"hometown: run the command `migrate` first: {error}")
    sys.stdout.write(f"{format_served(model)}\n")


def format_served(model: ReadModel) -> str:
    """Return a line for people."""
    return f"{model.name}: version {model.version} is served"
