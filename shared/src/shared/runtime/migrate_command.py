"""The command `migrate` of every service."""

import sys

from shared.runtime import postgres
from shared.runtime.postgres import ChangedMigration
from shared.runtime.rights import NoSuchRole, UnknownTable
from shared.runtime.settings import Settings


async def run(settings: Settings, *packages: str) -> None:
    """Apply the packages' migrations as the owner, print them, and grant the service's role its
    rights.

    Raises:
        SystemExit: one line, the reason.
    """
    try:
        applied = await postgres.migrate(
            settings.database_dsn,
            *packages,
            service_role=settings.database_service_role,
            reader_role=settings.database_reader_role,
        )
    except (ChangedMigration, NoSuchRole, UnknownTable) as error:
        sys.exit(f"hometown: {error}")
    sys.stdout.write("".join(f"applied {name}\n" for name in applied))
