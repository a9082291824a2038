"""The end of a step: an engine has read all there is, and what that leads to."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection

from aiokafka import TopicPartition

from lessons.broker import Topics

POLL_SECONDS = 0.05
SETTLED_POLLS = 3
"""So often in a row everything must have been read: a record can lead to another one."""
STEP_SECONDS_MAX = 180.0


async def wait_until_settled(
    find_unread: Callable[[], Awaitable[Collection[str]]],
    reader: str,
    seconds_max: float = STEP_SECONDS_MAX,
) -> None:
    """Wait until an engine's reader has committed all that its topics have.

    Raises:
        TimeoutError: it has not, within so many seconds.
    """
    deadline = time.monotonic() + seconds_max
    settled = 0
    while settled < SETTLED_POLLS:
        unread = await find_unread()
        settled = 0 if unread else settled + 1
        if unread and time.monotonic() > deadline:
            raise TimeoutError(f"not read by {reader}: {', '.join(sorted(unread))}")
        await asyncio.sleep(POLL_SECONDS)


async def find_unread(topics: Topics, group: str, places: Collection[TopicPartition]) -> set[str]:
    """Find the topics that have more than a group has committed."""
    committed = await topics.admin.list_consumer_group_offsets(group)
    done = {place: offset.offset for place, offset in committed.items()}
    ends = await topics.get_ends([*places])
    return {place.topic for place, end in ends.items() if done.get(place, 0) < end}
