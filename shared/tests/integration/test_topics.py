"""The command that creates the topics, and shows where the broker differs from the declarations."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.partitioner import murmur2

from shared.messaging import topics
from shared.messaging.topic_differences import find_differences, read_topics
from shared.messaging.topics import DEAD_LETTER_TOPIC, TOPICS, Topic
from shared.runtime.brokers import Brokers
from shared.runtime.identifiers import new_id

TOPIC = "items.v1"
DEAD_LETTERS = TOPICS[TOPIC].dead_letters_of("orders-worker")
READER = "later-worker"
SHOWN_SECONDS_MAX = 30

Declare = Callable[[int], list[str]]
Check = Callable[[int], Awaitable[list[str]]]


@pytest.fixture
async def admin(kafka_servers: str) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=kafka_servers)
    await client.start()
    yield client
    await client.close()


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Declares a topic of this test alone, with so many partitions; its name and that of its dead
    letters."""
    name = f"later-{new_id()}.v1"

    def declare(partitions: int) -> list[str]:
        topic = Topic(name=name, partitions=partitions, readers=(READER,), types=())
        monkeypatch.setitem(topics.TOPICS, name, topic)
        return [name, topic.dead_letters_of(READER)]

    return declare


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """A broker shows a change a moment after it has accepted it."""
    async with asyncio.timeout(SHOWN_SECONDS_MAX):
        while not await condition():
            await asyncio.sleep(0.1)


@pytest.fixture
def check(kafka_servers: str, capsys: pytest.CaptureFixture[str]) -> Check:
    """What the command prints when it ends with this status."""

    async def check(status: int) -> list[str]:
        printed: list[str] = []

        async def ends_so() -> bool:
            capsys.readouterr()
            with pytest.raises(SystemExit) as ended:
                await topics.run(Brokers(kafka_servers), 1, only_check=True)
            printed[:] = capsys.readouterr().out.splitlines()
            return ended.value.code == status

        await until(ends_so)
        return printed

    return check


async def test_topics_that_the_command_has_created_do_not_differ(check: Check) -> None:
    assert await check(0) == [f"{len(topics.list_new_topics(1))} topics, 0 differences"]


async def test_a_setting_that_was_changed_is_found(
    check: Check, admin: AIOKafkaAdminClient
) -> None:
    async def change(configs: dict[str, str]) -> None:
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, DEAD_LETTERS, configs)])

    await change(DEAD_LETTER_TOPIC | {"retention.ms": "60000", "segment.bytes": "1048576"})
    try:
        found = await check(1)
    finally:
        await change(DEAD_LETTER_TOPIC)

    assert found[:-1] == [
        f"{DEAD_LETTERS} has retention.ms=60000, not retention.ms=-1",
        f"{DEAD_LETTERS} has segment.bytes=1048576, not the default segment.bytes",
    ]
    await check(0)


async def test_missing_topics_are_found_and_created(
    kafka_servers: str, declare: Declare, check: Check, capsys: pytest.CaptureFixture[str]
) -> None:
    names = declare(2)

    found = await check(1)
    await topics.run(Brokers(kafka_servers), 1, only_check=False)
    created = capsys.readouterr().out

    assert found[:-1] == [f"{name} is missing: `make topics` creates it" for name in names]
    assert created.splitlines() == [f"created {name}" for name in names]
    await check(0)


async def test_partitions_are_not_added_to_a_topic_that_is_there_but_to_its_dead_letters(
    kafka_servers: str, declare: Declare, check: Check
) -> None:
    """A dead letter has the partition of its record, also when the topic is created again."""
    declare(2)
    await topics.run(Brokers(kafka_servers), 1, only_check=False)
    await check(0)
    names = declare(3)

    with pytest.raises(SystemExit, match="has 2 partitions, not 3: none are added") as no:
        await topics.run(Brokers(kafka_servers), 1, only_check=False)

    async def is_added() -> bool:
        present = await read_topics(Brokers(kafka_servers), names)
        return [present[name].partitions for name in names] == [2, 3]

    assert "\n" not in str(no.value)
    await until(is_added)
    assert (await check(1))[:-1] == [str(no.value).removeprefix("hometown: ")]


def test_with_one_more_partition_most_keys_would_move() -> None:
    """The reason: events of one key would lie in two partitions, which are read in any order."""
    hashes = [murmur2(str(number).encode()) & 0x7FFFFFFF for number in range(1000)]

    assert sum(each % 4 != each % 5 for each in hashes) > 700


async def test_an_unavailable_broker_is_reported_in_one_line() -> None:
    with pytest.raises(SystemExit, match="hometown: the brokers do not answer as they") as ended:
        await topics.run(Brokers("127.0.0.1:1"), 1, only_check=True)

    assert "\n" not in str(ended.value)


async def test_replicas_are_compared_as_well(kafka_servers: str) -> None:
    """A cluster's three, of a broker that has one."""
    declared = [each for each in topics.list_declared(3) if each.name == TOPIC]
    present = await read_topics(Brokers(kafka_servers), [TOPIC])

    assert list(find_differences(declared, present)) == [f"{TOPIC} has 1 replicas, not 3"]
