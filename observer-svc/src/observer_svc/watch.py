"""The observer as a process: it measures again and again, and shows what it has seen last."""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import asyncpg
from aiokafka.errors import KafkaError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from observer_svc import databases, gauges, groups
from observer_svc.databases import Database
from observer_svc.groups import Logs
from observer_svc.report import (
    JSON,
    ConsumerLag,
    ConsumerProgress,
    ParkedStreams,
    Place,
    RelayBacklog,
    Report,
)
from observer_svc.settings import WatchSettings
from observer_svc.states import (
    BEAT_SECONDS_MAX,
    FULL_SAMPLES,
    Sample,
    judge_consumer,
    judge_relay,
)
from shared.inbox.parked import ParkedCount
from shared.messaging.topics import TOPICS
from shared.outbox.backlog import Backlog
from shared.runtime import postgres
from shared.runtime.brokers import Brokers
from shared.runtime.declarations import RELAY, load_declarations
from shared.runtime.processes import create_stop_event, wait
from shared.web.health import health_server, not_ready

NOT_MEASURED = "nothing is measured yet"
BROKER = "kafka"
"""The name of the brokers among servers; the others are databases."""
SILENCE_SECONDS_MAX = 30.0
"""Without a measurement, after which the observer is not ready."""

ON_REQUEST = {each.name for each in load_declarations().processes if each.profile is not None}
NONE_PARKED = ParkedCount(streams=0, seconds=0.0)

log = logging.getLogger(__name__)


class Watch:
    """What was seen, measurement by measurement. `stores` are addresses by the name of a database.

    Nothing is kept of a server that cannot be read: an old value would look like a current one.
    """

    def __init__(self, brokers: Brokers, stores: Mapping[str, str]) -> None:
        self._brokers = brokers
        self._stores = stores
        self._samples: dict[Place, deque[Sample]] = {}
        self._backlogs: dict[str, deque[Backlog]] = {}
        self._databases: dict[str, Database] = {}
        self._failures: dict[str, str] = {}
        self.report: Report | None = None
        """None before the first measurement."""

    async def measure(self) -> None:
        """Measure all servers once; one that fails is named in the report."""
        await asyncio.gather(*(self._read_database(name) for name in self._stores))
        await self._read_broker()
        self.report = self._create_report(datetime.now(UTC))

    async def _read_database(self, name: str) -> None:
        has_event_store = name in load_declarations().event_stores
        try:
            found = await databases.read(self._stores[name], has_event_store=has_event_store)
        except (*postgres.UNAVAILABLE, asyncpg.PostgresError) as error:
            self._databases.pop(name, None)
            self._backlogs.pop(name, None)
            self._note_failure(name, error)
            return
        self._note_success(name)
        self._databases[name] = found
        if found.backlog is not None:
            samples = self._backlogs.setdefault(name, deque(maxlen=FULL_SAMPLES))
            samples.append(found.backlog)

    async def _read_broker(self) -> None:
        own_offsets = {each.consumer for each in self._progress}
        try:
            logs = await groups.read(self._brokers, list_readers() - own_offsets)
        except (KafkaError, OSError) as error:
            self._samples.clear()
            self._note_failure(BROKER, error)
            return
        self._note_success(BROKER)
        self._add_samples({**self._sample_groups(logs), **self._sample_databases(logs)})

    @property
    def _progress(self) -> Sequence[ConsumerProgress]:
        return [each for found in self._databases.values() for each in found.progress]

    def _sample_groups(self, logs: Logs) -> Mapping[Place, Sample]:
        """Of consumer groups, also of one that has never been there.

        While a database cannot be read, a reader without a group can be one that keeps its offsets
        there. One that starts on request alone is left out while it does not run.
        """
        is_complete = self._databases.keys() == self._stores.keys()
        return {
            Place(name, *partition): Sample(
                position=group.get_position(partition), end=end, is_alive=group.members > 0
            )
            for name, group in logs.groups.items()
            if group.members or (name not in ON_REQUEST and (group.committed or is_complete))
            for partition, end in logs.ends.items()
            if name in TOPICS[partition.topic].readers
        }

    def _sample_databases(self, logs: Logs) -> Mapping[Place, Sample]:
        positions = {
            place: position
            for found in self._databases.values()
            for place, position in found.positions.items()
        }
        return {
            place: Sample(
                position=positions.get(place, groups.BEGIN),
                end=end,
                is_alive=each.beat_seconds <= BEAT_SECONDS_MAX,
            )
            for each in self._progress
            for partition, end in logs.ends.items()
            if each.consumer in TOPICS[partition.topic].readers
            for place in [Place(each.consumer, *partition)]
        }

    def _add_samples(self, samples: Mapping[Place, Sample]) -> None:
        for gone in self._samples.keys() - samples.keys():
            del self._samples[gone]
        for place, sample in samples.items():
            self._samples.setdefault(place, deque(maxlen=FULL_SAMPLES)).append(sample)

    def _create_report(self, now: datetime) -> Report:
        return Report(
            measured_at=now,
            consumers=[
                ConsumerLag(
                    place=place,
                    position=seen[-1].position,
                    end=seen[-1].end,
                    lag=seen[-1].lag,
                    is_alive=seen[-1].is_alive,
                    state=judge_consumer(seen),
                )
                for place, seen in sorted(self._samples.items(), key=lambda each: each[0].values)
            ],
            progress=self._progress,
            relays=[
                RelayBacklog(
                    name=load_declarations().service(name).process_name(RELAY),
                    database=name,
                    backlog=seen[-1],
                    state=judge_relay(seen),
                )
                for name, seen in self._backlogs.items()
            ],
            parked=[
                ParkedStreams(
                    database=name, consumer=consumer, count=found.parked.get(consumer, NONE_PARKED)
                )
                for name, found in self._databases.items()
                for consumer in sorted({*list_parking(name), *found.parked})
            ],
            clock_skew_seconds={
                name: found.clock_skew_seconds for name, found in self._databases.items()
            },
            servers={name: self._failures.get(name) for name in (*self._stores, BROKER)},
        )

    def _note_failure(self, server: str, error: BaseException) -> None:
        """Log an outage once."""
        if server not in self._failures:
            log.warning("%s cannot be measured: %r", server, error)
        # Any caller can read it: the text of an error is only logged.
        self._failures[server] = type(error).__name__

    def _note_success(self, server: str) -> None:
        if self._failures.pop(server, None):
            log.info("%s can be measured again", server)

    async def check(self) -> str | None:
        """Why the observer is not ready; None when it is."""
        if self.report is None:
            return NOT_MEASURED
        silence = datetime.now(UTC) - self.report.measured_at
        if silence > timedelta(seconds=SILENCE_SECONDS_MAX):
            return f"nothing was measured for {silence.total_seconds():.0f} s"
        return None


def list_readers() -> set[str]:
    """The consumers that services declare."""
    return {reader for topic in TOPICS.values() for reader in topic.readers}


def list_parking(database: str) -> Sequence[str]:
    """The processes that can park streams in a database: those with a topic."""
    service = load_declarations().service(database)
    if not service.has_event_store:
        return ()
    return [each.name for each in service.processes.values() if each.reads or each.writes]


async def run(settings: WatchSettings, stores: Mapping[str, str]) -> None:
    """Measure again and again until SIGTERM or SIGINT."""
    stop = create_stop_event()
    watch = Watch(settings.brokers, stores)

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
    with gauges.exposed(lambda: watch.report):
        async with health:
            while not stop.is_set():
                await watch.measure()
                await wait(stop, settings.observe_seconds)
