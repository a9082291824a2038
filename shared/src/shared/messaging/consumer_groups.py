"""Whether a consumer group is in use. Offsets of one that is not can be changed."""

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import for_code

from shared.runtime.brokers import Brokers

REQUEST_TIMEOUT_MILLISECONDS = 10_000

WORKER_SESSION_SECONDS = 8.0
"""How long a killed worker of a service stays in its group. Faust's own default of 60 s would leave
its partitions unread for as long."""


class GroupIsInUse(Exception):
    """The group has members: the text has their number."""


async def count_members(brokers: Brokers, group: str) -> int:
    """Members of a consumer group; 0 of one that does not exist. Raises KafkaError."""
    client = AIOKafkaAdminClient(**brokers.options, request_timeout_ms=REQUEST_TIMEOUT_MILLISECONDS)
    try:
        await client.start()
        [response] = await client.describe_consumer_groups([group])
    finally:
        await client.close()
    [(error_code, _, _, _, _, members, *_)] = response.groups
    if error_code:
        raise for_code(error_code)(group)
    return len(members)


async def require_no_member(brokers: Brokers, group: str, session_seconds: float) -> None:
    """Before offsets are changed. `session_seconds` is how long a killed member stays in the group.

    Raises:
        GroupIsInUse: the group has members.
        KafkaError: no broker answered.
    """
    members = await count_members(brokers, group)
    if members:
        process = "process is" if members == 1 else "processes are"
        raise GroupIsInUse(
            f"{members} {process} in the group {group}: stop {group} first; one that was killed"
            f" leaves the group after {session_seconds:.0f} s"
        )
