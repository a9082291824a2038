"""The lock that the one job which may write the tables holds, and so the sign that a job runs."""

from analytics_spark.hours import Connection

WRITER_LOCK = 0x63656C6C
"""Key of the advisory lock that lets one job write these tables."""

# Without leave of its own, anybody may see who holds which lock. A key below 2^32 is an `objid`.
IS_HELD = """
    SELECT EXISTS (
        SELECT FROM pg_locks
        WHERE locktype = 'advisory'
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND classid = 0
          AND objid = $1
          AND objsubid = 1
          AND granted
    )
"""


async def is_held(connection: Connection) -> bool:
    """Whether a job runs: PostgreSQL takes the lock back when its holder dies."""
    held: bool = await connection.fetchval(IS_HELD, WRITER_LOCK)
    return held
