"""The report of the observer as gauges."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

from observer_svc.report import Report
from shared.runtime import metrics
from shared.runtime.metrics import Values

LAG = metrics.Gauge(
    "hometown.consumer.lag",
    "{record}",
    "Records that a consumer has not consumed yet",
    ["consumer", "topic", "partition"],
)
STATE = metrics.Gauge(
    "hometown.consumer.state",
    "1",
    "State: 0 OK; 1 WARN, falls further behind; 2 STALL, reads nothing; 3 STOP, is not there",
    ["consumer", "topic", "partition"],
)
ALIVE = metrics.Gauge(
    "hometown.consumer.alive",
    "1",
    "Whether a consumer is there: 1 while its group has members, or its beat is recent, or 0",
    ["consumer"],
)
BEAT_AGE = metrics.Gauge(
    "hometown.consumer.beat.age",
    "s",
    "Since the job has stored that its query runs: a consumer that is no consumer group",
    ["consumer"],
)
COMMIT_AGE = metrics.Gauge(
    "hometown.consumer.commit.age",
    "s",
    "Since the job has committed a batch: a consumer that keeps its offsets itself",
    ["consumer"],
)
EVENT_LAG = metrics.Gauge(
    "hometown.consumer.event.lag",
    "s",
    "From the latest time of an event that the job has counted to now, by its database",
    ["consumer"],
)
WATERMARK_LAG = metrics.Gauge(
    "hometown.consumer.watermark.lag",
    "s",
    "From the watermark of the job to the latest time of an event that it has counted",
    ["consumer"],
)
OUTBOX_ROWS = metrics.Gauge(
    "hometown.outbox.rows",
    "{row}",
    "Rows of the outbox that are not acknowledged, 10,000 at most",
    ["database"],
)
OUTBOX_AGE = metrics.Gauge(
    "hometown.outbox.age", "s", "How long the oldest of these rows has waited", ["database"]
)
RELAY_STATE = metrics.Gauge(
    "hometown.relay.state",
    "1",
    "State: 0 OK; 1 WARN, rows wait longer and longer; 2 STALL, its loop hangs; 3 STOP, no lease",
    ["database"],
)
RELAY_BEAT_AGE = metrics.Gauge(
    "hometown.relay.beat.age",
    "s",
    "Since the loop of the relay that holds the lease came round, or published a page",
    ["database"],
)
PARKED = metrics.Gauge(
    "hometown.parked.streams",
    "{stream}",
    "Streams that wait for an operator",
    ["database", "consumer"],
)
PARKED_AGE = metrics.Gauge(
    "hometown.parked.age",
    "s",
    "Since the first of these streams was parked; 0 while there is none",
    ["database", "consumer"],
)
SKEW = metrics.Gauge(
    "hometown.clock.skew", "s", "The clock of a database minus that of the observer", ["database"]
)
REACHED = metrics.Gauge(
    "hometown.observer.reached",
    "1",
    "Whether the last measurement of a server succeeded: 1, or 0 where it failed",
    ["server"],
)
DISK_FREE = metrics.Gauge(
    "hometown.disk.free", "By", "Bytes that the disk of DATA_FOLDER can still take"
)
DISK_SIZE = metrics.Gauge("hometown.disk.size", "By", "Bytes of the whole disk of DATA_FOLDER")

Numbers = Mapping[Values, float]

READS: Mapping[metrics.Gauge, Callable[[Report], Numbers]] = {
    LAG: lambda report: {each.place.values: each.lag for each in report.consumers},
    STATE: lambda report: {each.place.values: each.state.rank for each in report.consumers},
    ALIVE: lambda report: {(each.place.consumer,): each.is_alive for each in report.consumers},
    BEAT_AGE: lambda report: {(each.consumer,): each.beat_seconds for each in report.progress},
    COMMIT_AGE: lambda report: leave_out_unknown(
        {each.consumer: each.commit_seconds for each in report.progress}
    ),
    EVENT_LAG: lambda report: leave_out_unknown(
        {each.consumer: each.event_seconds for each in report.progress}
    ),
    WATERMARK_LAG: lambda report: leave_out_unknown(
        {each.consumer: each.watermark_seconds for each in report.progress}
    ),
    OUTBOX_ROWS: lambda report: {(each.database,): each.backlog.rows for each in report.relays},
    OUTBOX_AGE: lambda report: {(each.database,): each.backlog.seconds for each in report.relays},
    RELAY_STATE: lambda report: {(each.database,): each.state.rank for each in report.relays},
    RELAY_BEAT_AGE: lambda report: leave_out_unknown(
        {each.database: each.backlog.beat_seconds for each in report.relays}
    ),
    PARKED: lambda report: {
        (each.database, each.consumer): each.count.streams for each in report.parked
    },
    PARKED_AGE: lambda report: {
        (each.database, each.consumer): each.count.seconds for each in report.parked
    },
    SKEW: lambda report: leave_out_unknown(report.clock_skew_seconds),
    REACHED: lambda report: {
        (server,): reason is None for server, reason in report.servers.items()
    },
    DISK_FREE: lambda report: {} if report.disk is None else {(): report.disk.free},
    DISK_SIZE: lambda report: {} if report.disk is None else {(): report.disk.size},
}


def leave_out_unknown(numbers: Mapping[str, float | None]) -> Numbers:
    """Leave out what is not known."""
    return {(name,): number for name, number in numbers.items() if number is not None}


@contextmanager
def exposed(get_report: Callable[[], Report | None]) -> Iterator[None]:
    """Expose a report while the block runs; nothing while there is none."""

    def read(numbers_of: Callable[[Report], Numbers]) -> Numbers:
        report = get_report()
        return {} if report is None else numbers_of(report)

    with ExitStack() as reading:
        for gauge, numbers_of in READS.items():
            reading.enter_context(gauge.read_by(partial(read, numbers_of)))
        yield
