"""Topics as an operator creates, changes and deletes them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from shared.messaging import topics
from shared.runtime.brokers import Brokers
from test_support.waits import HANGS_AFTER_SECONDS

POLL_SECONDS = 0.1


@asynccontextmanager
async def admin_client(servers: str) -> AsyncIterator[AIOKafkaAdminClient]:
    """A client that is closed at the end, whatever happened."""
    client = AIOKafkaAdminClient(bootstrap_servers=servers)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def create_topics(servers: str, *wanted: NewTopic) -> None:
    async with admin_client(servers) as client:
        await client.create_topics([*wanted])


async def configure_topic(servers: str, name: str, configs: Mapping[str, str]) -> None:
    """Give a topic these settings, and the defaults for all others."""
    resource = ConfigResource(ConfigResourceType.TOPIC, name, configs=dict(configs))
    async with admin_client(servers) as client:
        await client.alter_configs([resource])


async def lose_topic(servers: str, name: str) -> None:
    """Delete a topic and create it again, as `make republish` does before the replay."""
    async with admin_client(servers) as client:
        await client.delete_topics([name])
    async with asyncio.timeout(HANGS_AFTER_SECONDS):
        while name not in await topics.create(Brokers(servers)):
            await asyncio.sleep(POLL_SECONDS)
