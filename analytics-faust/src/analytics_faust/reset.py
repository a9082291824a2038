"""`reset`: forget all that was counted, so that the next start counts every record again.

What the program knows is in four places: the offsets of its group, its changelogs, the records
between its steps, and the folder of its tables. One that is left would be mixed with what is
counted again; so it is one act, and one that was interrupted is repeated.
"""

import asyncio
import shutil
import sys
import time
from collections.abc import Iterable, Sequence

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, for_code

from analytics_faust.copartitions import LINES_BY_ITEM, PURCHASES_BY_HOUR
from analytics_faust.messages import ITEMS, ORDERS, USERS
from analytics_faust.settings import FaustSettings
from analytics_faust.worker import NAME, SESSION_TIMEOUT_SECONDS
from shared.inbox import rewind
from shared.messaging.consumer_groups import GroupIsInUse
from shared.messaging.topics import INTERNAL_TOPICS, TOPICS, InternalTopic, Topic
from shared.runtime.brokers import Brokers
from shared.runtime.declarations import load_declarations

REQUEST_TIMEOUT_MILLISECONDS = 30_000
DELETED_SECONDS_MAX = 30
POLL_SECONDS = 0.2


async def reset(settings: FaustSettings) -> int:
    """Forget everything; the number of records that the next start reads from its topics.

    Raises:
        GroupIsInUse: a worker runs; nothing was changed.
        KafkaError, OSError, TimeoutError: repeat it.
    """
    brokers = settings.brokers
    # First, as Kafka refuses it when a worker has started meanwhile.
    await forget_offsets(brokers, [USERS, ITEMS, ORDERS])
    own = load_declarations().service(NAME).internal_topics
    await create_again(brokers, [INTERNAL_TOPICS[name] for name in own])
    await forget_offsets(brokers, [LINES_BY_ITEM, PURCHASES_BY_HOUR])
    if settings.faust_dir.exists():
        shutil.rmtree(settings.faust_dir)
    moves = await rewind.plan(brokers, NAME, list_partitions([USERS, ITEMS, ORDERS]), rewind.LATEST)
    return sum(each.skipped for each in moves)


async def forget_offsets(brokers: Brokers, topics: Iterable[str]) -> None:
    """Let the group continue with the first record of each topic."""
    moves = await rewind.plan(brokers, NAME, list_partitions(topics), rewind.EARLIEST)
    await rewind.apply(brokers, NAME, moves, session_seconds=SESSION_TIMEOUT_SECONDS)


def list_partitions(topics: Iterable[str]) -> list[TopicPartition]:
    declared: list[Topic | InternalTopic] = [*TOPICS.values(), *INTERNAL_TOPICS.values()]
    partitions = {topic.name: topic.partitions for topic in declared}
    return [TopicPartition(name, number) for name in topics for number in range(partitions[name])]


async def create_again(brokers: Brokers, topics: Sequence[InternalTopic]) -> None:
    """Delete the topics with their records, and create them empty.

    Kafka deletes no records of a compacted topic otherwise.
    """
    client = AIOKafkaAdminClient(**brokers.options, request_timeout_ms=REQUEST_TIMEOUT_MILLISECONDS)
    try:
        await client.start()
        [of_users] = await client.describe_topics([USERS])
        replicas = min(len(each["replicas"]) for each in of_users["partitions"])
        await delete(client, [each.name for each in topics])
        await create(client, topics, replicas)
    finally:
        await client.close()


async def delete(client: AIOKafkaAdminClient, names: Sequence[str]) -> None:
    """Those of the topics that exist; returns when they do not any more."""
    deadline = time.monotonic() + DELETED_SECONDS_MAX
    present = await find_present(client, names)
    if present:
        deleted = await client.delete_topics(present)
        for name, code in deleted.topic_error_codes:
            if code:
                raise for_code(code)(name)
    while present := await find_present(client, names):
        if time.monotonic() > deadline:
            raise TimeoutError(f"Kafka still has {', '.join(present)}")
        await asyncio.sleep(POLL_SECONDS)


async def create(
    client: AIOKafkaAdminClient, topics: Sequence[InternalTopic], replicas: int
) -> None:
    created = await client.create_topics(
        [
            NewTopic(each.name, each.partitions, replicas, topic_configs=each.configs)
            for each in topics
        ]
    )
    for name, code, *reason in created.topic_errors:
        if code:
            raise for_code(code)(f"{name}: {reason}")


async def find_present(client: AIOKafkaAdminClient, names: Sequence[str]) -> list[str]:
    return [
        each["topic"]
        for each in await client.describe_topics(list(names))
        if not each["error_code"]
    ]


async def run(settings: FaustSettings) -> None:
    """The command `reset`.

    Raises:
        SystemExit: one line, the reason why it was not done.
    """
    try:
        records = await reset(settings)
    except GroupIsInUse as error:
        sys.exit(f"hometown: nothing was reset: {error}")
    except (KafkaError, OSError, TimeoutError) as error:
        sys.exit(f"hometown: the reset is not complete, repeat it: {error or type(error).__name__}")
    sys.stdout.write(f"{NAME} counts again from its next start on: {records} records\n")
