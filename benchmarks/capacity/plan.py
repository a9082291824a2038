"""From a load and the cost of a record to how much of everything is needed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.capacity import replication, retention
from benchmarks.capacity.costs import Cost, RecordCosts
from benchmarks.capacity.retention import SECONDS_OF_A_DAY

CORE_SHARE_MAX = 0.7
"""Of a core, a network and a disk at the peak: what is full has a queue in front of it."""
MEGABYTE = 1_000_000
GIGABYTE = 1_000 * MEGABYTE
TERABYTE = 1_000 * GIGABYTE
UNITS = {TERABYTE: "TB", GIGABYTE: "GB", MEGABYTE: "MB", 1_000: "KB"}
RECORD_BYTES = 780
"""Of the event that every measurement sends: 300 bytes of JSON, 13 headers and a key."""
SEGMENT_BYTES = 1 << 30
"""Kafka's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """`rate` and `peak` are in records a second: the mean of a day, and the highest.

    `readers` are consumer groups; each reads all records.
    """

    rate: int
    peak: int
    size: int = RECORD_BYTES
    days: int = 7
    replicas: int = 3
    readers: int = 2
    segment: int = SEGMENT_BYTES
    clusters: int = 1
    quota: int | None = None
    """Bytes a second that a client can send to one broker."""

    @property
    def bytes_a_day(self) -> int:
        return self.rate * self.size * SECONDS_OF_A_DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One broker, or one machine of processes; `network` is in bytes a second, each way."""

    cores: int = 8
    disk: int = 10 * TERABYTE
    network: int = 1_250 * MEGABYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What happens to each record: its CPU in microseconds, and what it follows from.

    `unit` is what shares the work: processes, or the cores of servers.
    """

    name: str
    microseconds: float
    costs: Sequence[Cost]
    unit: str

    def count_cores(self, rate: int) -> float:
        """The cores that the step uses fully at a rate."""
        return rate * self.microseconds / 1_000_000

    def count_units(self, peak: int) -> int:
        """Each has a core of its own that is not full at the peak."""
        return math.ceil(self.count_cores(peak) / CORE_SHARE_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One number of a plan, and why."""

    what: str
    amount: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """How many brokers each of their resources asks for; the largest number counts."""

    disk_bytes: int
    by_disk: int
    by_cores: int
    by_network: int
    by_replicas: int

    @property
    def count(self) -> int:
        return max(self.by_disk, self.by_cores, self.by_network, self.by_replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    load: Load
    machine: Machine
    steps: Sequence[Step]
    brokers: Brokers
    partitions: int
    needs: Sequence[Need]


def create_plan(load: Load, costs: RecordCosts, machine: Machine) -> Plan:
    steps = {step.name: step for step in list_steps(load, costs)}
    brokers = count_brokers(load, machine, steps["kafka"])
    readers = {name: steps[name].count_units(load.peak) for name in ("worker", "job")}
    partitions = count_partitions(max(readers.values()), brokers.count)
    return Plan(
        load=load,
        machine=machine,
        steps=list(steps.values()),
        brokers=brokers,
        partitions=partitions,
        needs=[
            *list_partition_needs(load, readers, brokers.count, partitions),
            *list_broker_needs(load, machine, brokers),
            *list_retention_needs(load, partitions),
            *list_cluster_needs(load, brokers.count),
        ],
    )


def list_steps(load: Load, costs: RecordCosts) -> list[Step]:
    """The way of a record whose request is one record, and on which one worker decides."""

    def create_step(name: str, unit: str, *parts: tuple[int, Cost]) -> Step:
        return Step(
            name=name,
            unit=unit,
            microseconds=sum(times * cost.microseconds for times, cost in parts),
            costs=[cost for _, cost in parts],
        )

    return [
        create_step("api", "processes", (1, costs.accept)),
        create_step("relay", "services", (1, costs.publish)),
        create_step(
            "kafka",
            "cores",
            (load.replicas, costs.write),
            (load.replicas - 1 + load.readers, costs.read),
        ),
        create_step("worker", "processes", (1, costs.decide)),
        create_step("job", "executor cores", (1, costs.count)),
        create_step(
            "postgres", "cores", (1, costs.accept_in_postgres), (1, costs.decide_in_postgres)
        ),
    ]


def count_partitions(readers: int, brokers: int) -> int:
    """At least one for each reader of a group, and equally many leaders on each broker."""
    return math.ceil(readers / brokers) * brokers


def count_brokers(load: Load, machine: Machine, kafka: Step) -> Brokers:
    disk_bytes = retention.compute_disk_bytes(load.bytes_a_day, load.days, load.replicas)
    each_way = max(load.replicas, load.replicas - 1 + load.readers)
    network = load.peak * load.size * each_way
    return Brokers(
        disk_bytes=disk_bytes,
        by_disk=retention.count_brokers_by_disk(disk_bytes, machine.disk),
        by_cores=math.ceil(kafka.count_units(load.peak) / machine.cores),
        by_network=math.ceil(network / (machine.network * CORE_SHARE_MAX)),
        by_replicas=load.replicas,
    )


def list_partition_needs(
    load: Load, readers: dict[str, int], brokers: int, partitions: int
) -> list[Need]:
    placed = replication.place_replicas(range(brokers), partitions, load.replicas)
    replicas, leaders = replication.count_replicas(placed), replication.count_leaders(placed)
    share = float(replication.compute_leader_share(load.replicas))
    return [
        Need(
            what="partitions",
            amount=f"{partitions:,}",
            reason=f"one for each of {max(readers.values()):,} readers of a group, in equal"
            f" numbers on {brokers} brokers",
        ),
        Need(
            what="replicas",
            amount=f"{replicas.total():,}",
            reason=f"{replicas[0]:,} on each broker, which leads {leaders[0]:,}: {share:.0%}",
        ),
    ]


def list_broker_needs(load: Load, machine: Machine, brokers: Brokers) -> list[Need]:
    return [
        Need(
            what="brokers",
            amount=str(brokers.count),
            reason=f"by disk {brokers.by_disk}, by cores {brokers.by_cores}, by network"
            f" {brokers.by_network}, by replicas {brokers.by_replicas}",
        ),
        Need(
            what="disk",
            amount=format_bytes(brokers.disk_bytes),
            reason=f"{format_bytes(load.bytes_a_day)} a day x {load.days} days x {load.replicas}"
            f" replicas, and {retention.OVERHEAD_PERCENT} %; a broker has"
            f" {format_bytes(machine.disk)}",
        ),
        Need(
            what="network",
            amount=f"{format_bytes(load.peak * load.size)}/s",
            reason=f"written at the peak; x {load.replicas} into the brokers, x"
            f" {load.replicas - 1 + load.readers} out of them",
        ),
    ]


def list_retention_needs(load: Load, partitions: int) -> list[Need]:
    bytes_a_day = load.bytes_a_day / partitions
    segment_days = retention.compute_segment_days(bytes_a_day, load.segment)
    age = retention.compute_age(load.days, segment_days)
    segments = retention.count_closed_segments(load.days, segment_days)
    bound = math.ceil(bytes_a_day * load.days)
    topic = retention.compute_topic_bytes_max(bound, partitions)
    memory = retention.compute_map_bytes(load.segment, load.size)
    return [
        Need(
            what="segments",
            amount=f"{segments * partitions:,}",
            reason=f"{segments:,} in a partition, a new one every {format_days(segment_days)};"
            f" the oldest record is up to {format_days(age.most)} old",
        ),
        Need(
            what="retention.bytes",
            amount=format_bytes(bound),
            reason=f"of a partition, where size is the bound: {format_bytes(topic)} of the topic",
        ),
        Need(
            what="cleaner map",
            amount=format_bytes(memory),
            reason=f"to compact one segment of new keys: {retention.MAP_ENTRY_BYTES} bytes of each",
        ),
    ]


def list_cluster_needs(load: Load, brokers: int) -> list[Need]:
    """Only what was asked for."""
    needs = []
    if load.clusters > 1:
        mirrors = replication.count_mirrors(load.clusters)
        needs.append(
            Need(
                what="mirrors",
                amount=str(mirrors),
                reason=f"each of {load.clusters} clusters has the records of all others;"
                f" {replication.count_mirrors(load.clusters, 2)} if one of each can fail",
            )
        )
    if load.quota is not None:
        quota = replication.compute_quota(load.quota, brokers)
        needs.append(
            Need(
                what="quota",
                amount=f"{format_bytes(quota)}/s",
                reason=f"of a client: {format_bytes(load.quota)}/s of each of {brokers} brokers",
            )
        )
    return needs


def format_bytes(count: int) -> str:
    """Three digits and a decimal unit, as of disks."""
    for unit, name in UNITS.items():
        if count >= 1_000 * unit:
            return f"{count // unit:,} {name}"
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count} bytes"


def format_days(days: float) -> str:
    """In the largest unit of which there is one."""
    minutes = days * 24 * 60
    if minutes >= 2 * 24 * 60:
        return f"{days:.3g} days"
    return f"{minutes / 60:.3g} h" if minutes >= 2 * 60 else f"{minutes:.2g} min"
