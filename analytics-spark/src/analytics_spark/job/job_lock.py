"""The lock that the one job which may write the tables holds, and so the sign that a job runs."""

from shared.runtime.postgres import Connection

WRITER_LOCK = 0x63656C6C
"""First key of the advisory lock that lets one job write these tables; the second one is the number
of their generation."""

# Without leave of its own, anybody may see who holds which lock. Of a lock with two keys they are
# `classid` and `objid`, and its `objsubid` is 2.
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
    """Whether the job runs that fills what is shown.

    PostgreSQL takes the lock back when its holder dies.
    """
    held: bool = await connection.fetchval(IS_HELD, WRITER_LOCK)
    return held
