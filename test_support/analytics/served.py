"""The api as clients see it: over a real connection, with batches that a test commits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from uuid import uuid4

import psycopg
import pyarrow as pa
from fastapi import FastAPI

from analytics_spark.job import sink
from analytics_spark.job.batch import CellBatch, Tally
from analytics_spark.job.cells import DELTAS
from analytics_spark.job.checkpoint import Offsets
from analytics_spark.job.orders import SAMPLES
from analytics_spark.job.records import BAD
from analytics_spark.serving.topic_ends import TopicEnds
from shared.runtime.brokers import Brokers
from shared.web.connections import TimedConnection, server_config
from shared.web.health import Server
from test_support.analytics.small_job import milliseconds

BUCKETS = 8
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


class KnownEnds(TopicEnds):
    """The ends of topics without Kafka."""

    def __init__(self, ends: Offsets | None) -> None:
        super().__init__(Brokers("127.0.0.1:1"))
        self._ends = ends

    async def current(self) -> Offsets | None:
        return self._ends


def purchase(hour: datetime, user: str = "Jack", **other: object) -> dict[str, object]:
    """A delta: a user from BJ buys three phones from there."""
    return {
        "hour": milliseconds(hour),
        "item_id": "iphone",
        "item_type": "phone",
        "address": "BJ",
        "gender": "male",
        "user_id": user,
        "purchases": 1,
        "quantity": 3,
        "cents": 16_166_64,
        **other,
    }


@dataclass(slots=True, kw_only=True)
class Writer:
    """Commits batches as the job does, one after another."""

    connection: psycopg.Connection
    query_id: str = field(default_factory=lambda: str(uuid4()))
    batches: int = 0
    ends: int = 0

    def commit(
        self,
        *deltas: dict[str, object],
        watermark: datetime | None = None,
        tally: Tally | None = None,
        began_at: int | None = None,
    ) -> None:
        counted = Tally(counted=len(deltas)) if tally is None else tally
        batch = CellBatch(
            query_id=self.query_id,
            batch_id=self.batches,
            buckets=BUCKETS,
            offsets={"orders.v1": {"0": [self.ends, self.ends + len(deltas)]}},
            watermark=watermark,
            latest_order_at=watermark,
            tally=counted,
            deltas=pa.Table.from_pylist(list(deltas), DELTAS),
            samples=SAMPLES.empty_table(),
            bad_records=BAD.empty_table(),
        )
        assert sink.apply(self.connection, batch, TRACE_ID, began_at=began_at)
        self.batches += 1
        self.ends += len(deltas)


@asynccontextmanager
async def served(
    app: FastAPI, protocol: type[asyncio.Protocol] = TimedConnection
) -> AsyncIterator[str]:
    """The address of the application."""
    config = server_config(app, "127.0.0.1", 0)
    config.http = protocol
    server = Server(config)
    serving = asyncio.create_task(server.serve())
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        host, port = server.servers[0].sockets[0].getsockname()
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = server.force_exit = True
        await serving
