"""The observer as a process: it measures again and again, and shows what it has seen last."""

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Generic, TypeVar

import asyncpg
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from observer_svc import databases, disk, gauges, groups
from observer_svc.databases import Database
from observer_svc.groups import Logs
from observer_svc.report import (
    JSON,
    ConsumerLag,
    ParkedStreams,
    Place,
    RelayBacklog,
    Report,
)
from observer_svc.settings import WatchSettings
from observer_svc.states import (
    FULL_SAMPLES,
    Sample,
    find_worst,
    is_recent,
    judge_consumer,
    judge_relay,
)
from shared.inbox.parked import ParkedCount
from shared.messaging.topics import TOPICS
from shared.outbox.backlog import Backlog
from shared.runtime import postgres
from shared.runtime.brokers import Brokers
from shared.runtime.declarations import RELAY, load_declarations
from shared.runtime.logs import because
from shared.runtime.processes import create_stop_event, wait
from shared.web.health import health_server, not_ready

T = TypeVar("T")

NOT_MEASURED = "nothing is measured yet"
BROKER = "kafka"
"""The name of the brokers among servers; the others are databases."""
BROKER_SECONDS_MAX = 18.0
"""Of its measurement, with the end of its connections."""
SILENCE_SECONDS_MAX = 30.0
"""Without a measurement, after which the observer is not ready and exposes nothing."""

GAP_SECONDS_MAX = 60.0
"""Between two measurements that are judged together."""

BEGIN = 0
"""Where a consumer starts: no topic of a service loses its oldest records, and nothing is committed
in a partition before the first record there."""

ON_REQUEST = {each.name for each in load_declarations().processes if each.profile is not None}
NONE_PARKED = ParkedCount(streams=0, seconds=0.0)

log = logging.getLogger(__name__)


class Watch:
    """What was seen, measurement by measurement. `stores` are addresses by the name of a database,
    and `data_folder` is on the disk that is measured; None: no disk is.

    Nothing is reported of a server that cannot be read: an old value would look like a current one.
    What was seen before stays, and is judged with what is seen next.
    """

    def __init__(
        self, brokers: Brokers, stores: Mapping[str, str], data_folder: Path | None
    ) -> None:
        self._brokers = brokers
        self._stores = stores
        self._data_folder = data_folder
        self._samples: defaultdict[Place, History[Sample]] = defaultdict(History)
        self._backlogs: defaultdict[str, History[Backlog]] = defaultdict(History)
        self._databases: dict[str, Database] = {}
        self._failures: dict[str, str] = {}
        self.report: Report | None = None
        """None before the first measurement."""

    async def measure(self) -> None:
        """Measure all servers once; one that fails is named in the report."""
        await asyncio.gather(*(self._read_database(name) for name in self._stores))
        places = await self._read_broker()
        self.report = self._create_report(datetime.now(UTC), places)

    async def _read_database(self, name: str) -> None:
        declared = load_declarations()
        try:
            found = await databases.read(
                self._stores[name],
                has_event_store=name in declared.event_stores,
                has_offsets=bool(declared.consumers_in(name)),
            )
        except (*postgres.UNAVAILABLE, asyncpg.PostgresError) as error:
            self._databases.pop(name, None)
            self._note_failure(name, error)
            return
        self._note_success(name)
        self._databases[name] = found
        if found.backlog is not None:
            self._backlogs[name].add(found.backlog)

    async def _read_broker(self) -> Collection[Place]:
        """Take a sample of each consumer in each partition; returns those that were measured."""
        try:
            async with asyncio.timeout(BROKER_SECONDS_MAX):
                logs = await groups.read(self._brokers, list_groups())
        except (KafkaError, OSError) as error:
            self._note_failure(BROKER, error)
            return ()
        if logs.failures:
            missing = [describe(key) for key in logs.failures]
            self._note_failure(BROKER, next(iter(logs.failures.values())), missing)
        else:
            self._note_success(BROKER)
        samples = {**sample_groups(logs), **self._sample_stored(logs)}
        for place, sample in samples.items():
            self._samples[place].add(sample)
        return samples.keys()

    def _sample_stored(self, logs: Logs) -> Mapping[Place, Sample]:
        """Take a sample of consumers that store their offsets, also of one that was never there."""
        samples: dict[Place, Sample] = {}
        for database, found in self._databases.items():
            beats = {each.consumer: each.beat_seconds for each in found.progress}
            for name in load_declarations().consumers_in(database):
                is_alive = name in beats and is_recent(beats[name])
                samples |= sample(name, found.positions.get(name, {}), logs.ends, is_alive=is_alive)
        return samples

    def _create_report(self, now: datetime, places: Collection[Place]) -> Report:
        read = {name: self._databases[name] for name in self._stores if name in self._databases}
        consumers = [
            ConsumerLag(
                place=place,
                position=seen[-1].position,
                end=seen[-1].end,
                lag=seen[-1].lag,
                is_alive=seen[-1].is_alive,
                state=judge_consumer(seen),
            )
            for place in sorted(places, key=lambda each: each.values)
            for seen in [self._samples[place].values]
        ]
        relays = [
            RelayBacklog(
                name=load_declarations().service(name).process_name(RELAY),
                database=name,
                backlog=found.backlog,
                state=judge_relay(self._backlogs[name].values),
            )
            for name, found in read.items()
            if found.backlog is not None
        ]
        return Report(
            measured_at=now,
            state=find_worst([each.state for each in consumers] + [each.state for each in relays]),
            consumers=consumers,
            progress=[each for found in read.values() for each in found.progress],
            relays=relays,
            parked=[
                ParkedStreams(
                    database=name, consumer=consumer, count=found.parked.get(consumer, NONE_PARKED)
                )
                for name, found in read.items()
                for consumer in sorted({*list_parking(name), *found.parked})
            ],
            clock_skew_seconds={name: found.clock_skew_seconds for name, found in read.items()},
            servers={name: self._failures.get(name) for name in (*self._stores, BROKER)},
            disk=disk.measure(self._data_folder),
        )

    def _note_failure(self, server: str, error: Exception, missing: Sequence[str] = ()) -> None:
        """Log an outage; `missing` is what alone could not be read, or nothing for all."""
        of_what = "".join(f", {each}" for each in missing)
        about = because(error) | {"missing": ", ".join(missing) or None}
        log.warning("%s cannot be measured", server, extra=about)
        # Any caller can read it: the text of an error is only logged.
        self._failures[server] = f"{type(error).__name__}{of_what}"

    def _note_success(self, server: str) -> None:
        if self._failures.pop(server, None):
            log.info("%s can be measured again", server)

    async def check(self) -> str | None:
        """Why the observer is not ready; None when it is."""
        return self._find_obstacle()

    def _find_obstacle(self) -> str | None:
        if self.report is None:
            return NOT_MEASURED
        silence = datetime.now(UTC) - self.report.measured_at
        if silence > timedelta(seconds=SILENCE_SECONDS_MAX):
            return f"nothing was measured for {silence.total_seconds():.0f} s"
        return None

    def get_current(self) -> Report | None:
        """The report, unless it is too old."""
        return None if self._find_obstacle() else self.report


def sample_groups(logs: Logs) -> Mapping[Place, Sample]:
    """Take a sample of consumer groups, also of one that was never there.

    One that starts on request alone is left out while it does not run.
    """
    samples: dict[Place, Sample] = {}
    for name, group in logs.groups.items():
        if group.members or name not in ON_REQUEST:
            samples |= sample(name, group.committed, logs.ends, is_alive=group.members > 0)
    return samples


def sample(
    consumer: str,
    positions: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    *,
    is_alive: bool,
) -> Mapping[Place, Sample]:
    """Take a sample of a consumer in each partition that it reads and whose end is known."""
    return {
        Place(consumer, *partition): Sample(
            position=positions.get(partition, BEGIN), end=end, is_alive=is_alive
        )
        for partition, end in ends.items()
        if consumer in TOPICS[partition.topic].readers
    }


class History(Generic[T]):
    """The last measurements of one thing, without any gap: what was seen long before means little.

    GAP_SECONDS_MAX is more than a measurement takes at most.
    """

    def __init__(self) -> None:
        self.values: deque[T] = deque(maxlen=FULL_SAMPLES)
        """The oldest first."""
        self._added_at = 0.0

    def add(self, value: T) -> None:
        """Add a measurement of now."""
        now = time.monotonic()
        if now - self._added_at > GAP_SECONDS_MAX:
            self.values.clear()
        self.values.append(value)
        self._added_at = now


def describe(key: str | TopicPartition) -> str:
    """Name a group or a partition."""
    return key if isinstance(key, str) else f"{key.topic}/{key.partition}"


def list_groups() -> set[str]:
    """List the consumer groups that services declare."""
    return {
        process.name
        for process in load_declarations().processes
        if process.reads and not process.stores_offsets
    }


def list_parking(database: str) -> Sequence[str]:
    """List the processes that can park streams in a database: those with a topic."""
    service = load_declarations().service(database)
    if not service.has_event_store:
        return ()
    return [each.name for each in service.processes.values() if each.reads or each.writes]


async def run(settings: WatchSettings, stores: Mapping[str, str]) -> None:
    """Measure again and again until SIGTERM or SIGINT."""
    stop = create_stop_event()
    watch = Watch(settings.brokers, stores, settings.data_folder)

    async def answer(request: Request) -> Response:
        if watch.report is None:
            return not_ready(NOT_MEASURED)
        return Response(JSON.dump_json(watch.report), media_type="application/json")

    health = health_server(
        settings.http_host,
        settings.http_port,
        {"measurement": watch.check},
        [Route("/lag", answer)],
    )
    with gauges.exposed(watch.get_current):
        async with health:
            while not stop.is_set():
                await watch.measure()
                await wait(stop, settings.observe_seconds)
