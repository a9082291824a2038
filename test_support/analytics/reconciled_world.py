"""Event stores, and the tables that the job made of them batch by batch, without Kafka or Spark."""

from datetime import UTC, datetime, timedelta

import psycopg
from psycopg.types.json import Jsonb

from analytics_spark.reconciliation import reconcile
from analytics_spark.reconciliation.reconcile import Reconciliation
from test_support.analytics.histories import Event, at, confirmed
from test_support.analytics.small_job import LATENESS_MILLISECONDS, SmallJob
from test_support.analytics.stored_cells import store

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
"""When the first batch is committed; each next one is ten minutes later."""

LATENESS = timedelta(milliseconds=LATENESS_MILLISECONDS)
PARTITION = 2

INSERT_EVENT = """
    INSERT INTO events (
        stream_id, version, event_id, type, schema_version, data, metadata, recorded_at
    )
    VALUES (%s, %s, gen_random_uuid(), %s, %s, %s, '{}', %s)
"""

INSERT_PUBLICATION = """
    INSERT INTO publications (stream_id, version, partition, record_offset)
    VALUES (%s, %s, %s, %s)
"""

INSERT_BATCH = """
    INSERT INTO batches (
        query_id, batch_id, offsets, watermark, trace_id, committed_at,
        counted, late, duplicates, cancellations, ignored, bad
    )
    VALUES (gen_random_uuid(), %s, %s, %s, '', %s, 0, 0, 0, 0, 0, 0)
"""


class World:
    """Both event stores, the topics as orders-svc saw them, and the tables that the job made of
    them batch by batch."""

    def __init__(self, users: str, orders: str, analytics: str) -> None:
        self.stores = {"users": users, "orders": orders}
        self.analytics = analytics
        self._job = SmallJob()
        self._batches = 0
        self._offset = 0
        self._latest: datetime | None = None
        self._watermark: datetime | None = None

    def batch(self, *events: Event, recorded_ago: timedelta = timedelta(minutes=1)) -> "World":
        """These events happen, and the job reads them together."""
        first, now = self._offset, NOON + self._batches * timedelta(minutes=10)
        for event in events:
            self._record(event, now - recorded_ago)
        self._job.read(*events)
        with psycopg.connect(self.analytics) as connection:
            offsets = {"orders.v1": {str(PARTITION): [first, self._offset]}}
            connection.execute(INSERT_BATCH, [self._batches, Jsonb(offsets), self._watermark, now])
        self._batches += 1
        if self._latest is not None:
            self._watermark = self._latest - LATENESS
        return self

    def finish(self) -> "World":
        """One more batch, much later, makes all hours final; then the tables are what they are."""
        self.batch(confirmed("the last", "Lily", ("ipad", 1), ordered_at=at(hour=9)))
        self.batch()
        with psycopg.connect(self.analytics) as connection:
            store(connection, self._job, self._watermark)
        return self

    def compare(self) -> Reconciliation:
        return reconcile.compare(
            self.analytics, self.stores["users"], self.stores["orders"], hours_max=24
        )

    def change(self, statement: str) -> None:
        with psycopg.connect(self.analytics) as connection:
            assert connection.execute(statement.encode()).rowcount > 0

    def _record(self, event: Event, recorded_at: datetime) -> None:
        assert not isinstance(event.data, bytes)
        topic = event.topic.removesuffix(".v1")
        stream = str(event.data["order_id"]) if topic == "orders" else event.key
        with psycopg.connect(self.stores["users" if topic == "users" else "orders"]) as connection:
            connection.execute(
                INSERT_EVENT,
                [
                    *(stream, event.version, event.type, event.schema_version),
                    *(event.value.decode(), recorded_at),
                ],
            )
            if topic == "orders":
                connection.execute(
                    INSERT_PUBLICATION, [stream, event.version, PARTITION, self._offset]
                )
                self._offset += 1
                ordered_at = datetime.fromisoformat(str(event.data["ordered_at"]))
                self._latest = max(self._latest or ordered_at, ordered_at)
