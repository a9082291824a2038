"""The observer as a process: it measures again and again, and exposes what it has seen last."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import asyncpg
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from observer_svc import databases, delivery, groups, log_dirs
from observer_svc.databases import Database, Place
from observer_svc.groups import Group
from observer_svc.lag import Sample, State, evaluate
from observer_svc.settings import WatchSettings
from shared.messaging.topics import TOPICS
from shared.runtime import disks, metrics, postgres
from shared.runtime.brokers import Brokers
from shared.runtime.declarations import load_declarations
from shared.runtime.disks import Disk
from shared.runtime.metrics import Reading
from shared.runtime.processes import create_stop_event, wait
from shared.web.health import health_server

SAMPLES = 6
"""That a state is decided on: the last half minute, at the usual five seconds."""

LAG = metrics.Gauge(
    "hometown.consumer.lag", "{record}", "Records that a consumer has not consumed yet"
)
STATE = metrics.Gauge(
    "hometown.consumer.state",
    "1",
    "0: OK; 1 WARN: it falls further behind; 2 STALL: it does not read; 3 STOP: it is not there",
)
SKEW = metrics.Gauge("hometown.clock.skew", "s", "The clock of a server minus that of the observer")
REACHED = metrics.Gauge(
    "hometown.observer.reached", "1", "1 where the last measurement succeeded, 0 where it failed"
)

DIFFERENCE = metrics.Gauge(
    "hometown.delivery.difference",
    "{event}",
    "Events that were written and that a consumer has not applied",
)
COUNT_SECONDS = 30.0
"""The time between two comparisons: each is a pass over all streams."""

BROKER = "kafka"
ON_REQUEST = {each.name for each in load_declarations().processes if each.profile is not None}

log = logging.getLogger(__name__)


class Watch:
    """What was seen, measurement by measurement. `stores` are addresses by the name of a database,
    `folders` those with the data of servers that cannot measure their disks themselves.

    Nothing is kept of a server that cannot be read: an old value would look like a current one.
    """

    def __init__(
        self, brokers: Brokers, stores: Mapping[str, str], folders: Mapping[str, Path]
    ) -> None:
        self._brokers = brokers
        self._stores = stores
        self._folders = folders
        self._disks_of_brokers: Mapping[str, Disk] = {}
        self._disks_of_folders: Mapping[str, Disk | None] = {}
        self._samples: dict[Place, deque[Sample]] = {}
        self.databases: dict[str, Database] = {}
        self.failures: dict[str, str] = {}
        self._gauges: dict[str, metrics.Gauge] = {}
        self._count_at = 0.0
        self._differences: Mapping[str, int] = {}

    async def measure(self) -> None:
        """Measure all servers once; one that fails is named in `failures`."""
        is_counted = time.monotonic() >= self._count_at
        await asyncio.gather(*(self._read_database(name, is_counted) for name in self._stores))
        if is_counted:
            self._compare()
        await self._read_broker()
        self._disks_of_folders = await asyncio.to_thread(self._measure_folders)
        self._add_gauges()

    async def _read_database(self, name: str, with_counts: bool) -> None:
        try:
            self.databases[name] = await databases.read(self._stores[name], with_counts=with_counts)
        except (*postgres.UNAVAILABLE, asyncpg.PostgresError) as error:
            self.databases.pop(name, None)
            self._note_failure(name, error)
        else:
            self._note_success(name)

    def _compare(self) -> None:
        """Nothing is known while a database cannot be read."""
        self._count_at = time.monotonic() + COUNT_SECONDS
        counts = [each for found in self.databases.values() for each in found.counts]
        is_complete = self.databases.keys() == self._stores.keys()
        self._differences = delivery.compare(counts, TOPICS.values()) if is_complete else {}

    async def _read_broker(self) -> None:
        positions: dict[Place, tuple[int, bool | None]] = {
            place: (position, None)
            for database in self.databases.values()
            for place, position in database.positions.items()
        }
        elsewhere = {place.consumer for place in positions}
        try:
            ends = await groups.read_ends(self._brokers)
            found = await groups.read_groups(self._brokers, list_readers() - elsewhere)
            self._disks_of_brokers = await log_dirs.read_disks(self._brokers)
        except (KafkaError, OSError) as error:
            self._samples.clear()
            self._disks_of_brokers = {}
            self._note_failure(BROKER, error)
            return
        self._note_success(BROKER)
        for name, group in omit_unrequested(found).items():
            for partition, offset in group.get_positions(groups.list_partitions(name)).items():
                positions[Place(name, *partition)] = offset, group.is_alive
        self._add_samples(positions, ends)

    def _measure_folders(self) -> Mapping[str, Disk | None]:
        return {name: disks.measure(folder) for name, folder in self._folders.items()}

    def _add_samples(
        self,
        positions: Mapping[Place, tuple[int, bool | None]],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        for gone in self._samples.keys() - positions.keys():
            del self._samples[gone]
        for place, (position, is_alive) in positions.items():
            end = ends.get(TopicPartition(place.topic, place.partition))
            if end is not None:
                sample = Sample(position=position, end=end, is_alive=is_alive)
                self._samples.setdefault(place, deque(maxlen=SAMPLES)).append(sample)

    def _add_gauges(self) -> None:
        """A gauge for each name that a database has; its readings are those of all databases."""
        for database in self.databases.values():
            for each in database.observations:
                if each.name not in self._gauges:
                    gauge = metrics.Gauge(each.name, each.unit, each.description)
                    gauge.set_reader(partial(self.read_observations, each.name))
                    self._gauges[each.name] = gauge

    def read_observations(self, name: str) -> list[Reading]:
        return [
            ({"database": database, **each.attributes}, each.value)
            for database, found in self.databases.items()
            for each in found.observations
            if each.name == name
        ]

    def read_lags(self) -> list[Reading]:
        return [(to_attributes(place), seen[-1].lag) for place, seen in self._samples.items()]

    def read_states(self) -> list[Reading]:
        """The worst state of each consumer in any partition."""
        worst: dict[str, State] = {}
        for place, seen in self._samples.items():
            state = evaluate(seen, SAMPLES)
            worst[place.consumer] = max(state, worst.get(place.consumer, State.OK))
        return [({"consumer": name}, float(state)) for name, state in worst.items()]

    def read_skews(self) -> list[Reading]:
        return [
            ({"database": name}, each.clock_skew_seconds) for name, each in self.databases.items()
        ]

    def read_differences(self) -> list[Reading]:
        return [({"consumer": name}, float(each)) for name, each in self._differences.items()]

    def read_reached(self) -> list[Reading]:
        servers: Sequence[str] = (*self._stores, BROKER)
        return [({"server": name}, float(name not in self.failures)) for name in servers]

    def read_disks(self) -> Mapping[str, Disk | None]:
        return {**self._disks_of_folders, **self._disks_of_brokers}

    def _note_failure(self, server: str, error: BaseException) -> None:
        """Log an outage once."""
        if server not in self.failures:
            log.warning("%s cannot be measured: %r", server, error)
        self.failures[server] = repr(error)

    def _note_success(self, server: str) -> None:
        if self.failures.pop(server, None):
            log.info("%s can be measured again", server)


def list_readers() -> set[str]:
    """The consumers that services declare."""
    return {reader for topic in TOPICS.values() for reader in topic.readers}


def omit_unrequested(found: Mapping[str, Group]) -> Mapping[str, Group]:
    """Without those of processes that start on request, while they do not run."""
    return {
        name: group for name, group in found.items() if group.is_alive or name not in ON_REQUEST
    }


def to_attributes(place: Place) -> Mapping[str, str]:
    return {
        "consumer": place.consumer,
        "topic": place.topic,
        "partition": str(place.partition),
    }


async def run(settings: WatchSettings, stores: Mapping[str, str]) -> None:
    """Measure again and again until SIGTERM or SIGINT."""
    stop = create_stop_event()
    watch = Watch(settings.brokers, stores, settings.disk_folders)
    disks.expose(watch.read_disks)
    LAG.set_reader(watch.read_lags)
    STATE.set_reader(watch.read_states)
    SKEW.set_reader(watch.read_skews)
    REACHED.set_reader(watch.read_reached)
    DIFFERENCE.set_reader(watch.read_differences)
    async with health_server(settings.http_host, settings.http_port, {}):
        while not stop.is_set():
            await watch.measure()
            await wait(stop, settings.observe_seconds)
