"""Builds the API's resources from its settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from analytics_spark.serving.stream import Feed, open_feed
from analytics_spark.serving.topic_ends import TopicEnds, open_topic_ends
from analytics_spark.settings import ApiSettings
from shared.runtime import postgres


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    pool: asyncpg.Pool
    topic_ends: TopicEnds
    feed: Feed


@asynccontextmanager
async def open_resources(settings: ApiSettings) -> AsyncIterator[Resources]:
    """Open the API's resources; they are closed in reverse order."""
    async with (
        postgres.open_pool(
            settings.database_dsn,
            name="analytics-api",
            connections_max=settings.database_connections_max,
        ) as pool,
        open_topic_ends(settings.brokers) as topic_ends,
        open_feed(pool, settings.stream_seconds_max) as feed,
    ):
        yield Resources(pool=pool, topic_ends=topic_ends, feed=feed)
