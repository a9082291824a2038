"""The pipeline as a Faust application: user-activity, clean, count, user-behavior-analysis.

Every record is processed at least once. A count keeps the offset of its last activity, so that a
repeat changes nothing: activities of one user are in one partition, and their offsets only grow.
"""

import asyncio
import json
import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from analytics_faust.seeking import App
from analytics_faust.tables import ROCKSDB

PARTITIONS = 4
ACTIVITY = "user-activity"
CLEAN = "clean"
ANALYSIS = "user-behavior-analysis"

SESSION_TIMEOUT_SECONDS = 6.0
"""So long a member that was killed keeps its partitions; a broker allows no less by default."""
HEARTBEAT_SECONDS = 0.5
COMMIT_SECONDS = 0.2
BATCH_RECORDS_MAX = 100
"""Records whose writes are awaited together."""
RECOVERED_AT_ONCE = 20
SLOW_SECONDS = 0.5
"""Between a commit that comes too early and the effects."""

log = logging.getLogger(__name__)

Step = Callable[[Any], Sequence[Awaitable[object]]]
"""Processes an event and returns its pending writes; the event is done when they are."""


def get_changelog(prefix: str) -> str:
    """The topic with all changes of the counts."""
    return f"{prefix}pipeline-counts-changelog"


class Pipeline:
    """An application, and what it has read of the changelog of its table."""

    def __init__(
        self, servers: str, prefix: str, folder: str, standbys: int, *, is_early: bool
    ) -> None:
        self.activity = f"{prefix}{ACTIVITY}"
        self.read: Counter[str] = Counter()
        """Changes that were read: `again` to recover a partition, `copied` as a standby."""
        self.counted: Counter[int] = Counter()
        """Records of each partition."""
        self.committed_early = 0
        """Batches that were committed before their effects."""
        self.app: Any = App(
            f"{prefix}pipeline",
            broker=f"kafka://{servers}",
            store="rocksdb://",
            datadir=folder,
            table_standby_replicas=standbys,
            web_enabled=False,
            topic_disable_leader=True,
            topic_allow_declare=False,
            consumer_auto_offset_reset="earliest",
            broker_session_timeout=SESSION_TIMEOUT_SECONDS,
            broker_rebalance_timeout=SESSION_TIMEOUT_SECONDS,
            broker_heartbeat_interval=HEARTBEAT_SECONDS,
            broker_commit_interval=COMMIT_SECONDS,
            stream_wait_empty=False,
            autodiscover=False,
        )
        self._counts = self.app.Table(
            "counts",
            key_type=str,
            partitions=PARTITIONS,
            recovery_buffer_size=RECOVERED_AT_ONCE,
            on_changelog_event=self._note,
            options=dict(ROCKSDB),
        )
        self._clean_topic = self._open(f"{prefix}{CLEAN}")
        self._analysis = self._open(f"{prefix}{ANALYSIS}")
        self._add_agent("clean", self._open(self.activity), self._clean, is_early=is_early)
        self._add_agent("count", self._clean_topic, self._count)

    @property
    def owned(self) -> list[int]:
        """The partitions that this process reads; none while the group or a table is not ready."""
        app = self.app
        if not app.started or app.rebalancing or not app.tables.recovery.completed.is_set():
            return []
        return sorted(tp.partition for tp in app.consumer.assignment() if tp.topic == self.activity)

    def _clean(self, event: Any) -> Sequence[Awaitable[object]]:
        """`  Jack, CLICK` as user jack and action click; without a user, nothing."""
        user, _, action = event.message.value.decode().lower().partition(",")
        if not user.strip():
            return ()
        value = {"action": action.strip(), "offset": event.message.offset}
        key = user.strip().encode()
        return [self._clean_topic.send_soon(key=key, value=json.dumps(value).encode())]

    def _count(self, event: Any) -> Sequence[Awaitable[object]]:
        """A repeat is written again: its first change may not have been sent."""
        user = event.message.key.decode()
        offset = json.loads(event.message.value)["offset"]
        counted, last = self._counts.data.get(user) or (0, -1)
        if offset > last:
            counted, last = counted + 1, offset
        self._counts.data[user] = [counted, last]
        self.counted[event.message.partition] += 1
        return [
            self._counts.send_changelog(event.message.partition, user, [counted, last]),
            self._analysis.send_soon(key=user.encode(), value=str(counted).encode()),
        ]

    async def _note(self, event: Any) -> None:
        is_active = event.message.tp in self.app.tables.recovery.active_tps
        self.read["again" if is_active else "copied"] += 1

    def _open(self, topic: str) -> Any:
        return self.app.topic(topic, key_serializer="raw", value_serializer="raw")

    def _add_agent(self, name: str, topic: Any, step: Step, *, is_early: bool = False) -> None:
        """Process the records of a topic; with is_early they are acknowledged before that."""

        async def agent(stream: Any) -> None:
            # These four are as in analytics_faust.worker, which explains them: no automatic
            # acknowledgement, the queue is not dropped, concurrency 1, and an end on a failure.
            records = stream.noack()
            self.app.flow_control._queues.discard(records.channel.queue)
            batch: list[Any] = []
            pending: list[Awaitable[object]] = []
            async for event in records.events():
                if not is_early:
                    pending += step(event)
                batch.append(event)
                if len(batch) < BATCH_RECORDS_MAX and not records.channel.empty():
                    continue
                if is_early:
                    acknowledge(batch)
                    await self.app.consumer.commit()
                    self.committed_early += 1
                    await asyncio.sleep(SLOW_SECONDS)
                    pending = [write for each in batch for write in step(each)]
                await asyncio.gather(*pending)
                if not is_early:
                    acknowledge(batch)
                batch.clear()
                pending.clear()

        async def agent_or_end(stream: Any) -> None:
            try:
                await agent(stream)
            except Exception:
                log.exception("the agent %s failed", name)
                os._exit(1)

        self.app.agent(topic, name=f"lesson.{name}", concurrency=1)(agent_or_end)


def acknowledge(batch: Sequence[Any]) -> None:
    for event in batch:
        event.ack()
