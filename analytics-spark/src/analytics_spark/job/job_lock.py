"""The advisory lock of the one job that can write the tables: it also shows whether a job runs."""

from shared.runtime.postgres import Connection

WRITER_LOCK = 0x63656C6C
"""First key of the advisory lock; the second one is the number of the generation."""

# Every role can read pg_locks. A lock with two keys has them in `classid` and `objid`, and its
# `objsubid` is 2.
IS_HELD = """
    SELECT EXISTS (
        SELECT FROM pg_locks
        WHERE locktype = 'advisory'
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND classid = $1
          AND objid = (SELECT number FROM generations WHERE is_active)
          AND objsubid = 2
          AND granted
    )
"""


async def is_held(connection: Connection) -> bool:
    """Whether a job of the active generation runs.

    PostgreSQL releases the lock when its holder dies.
    """
    held: bool = await connection.fetchval(IS_HELD, WRITER_LOCK)
    return held
