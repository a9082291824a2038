"""The table of `make lag`, from a report of the observer."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from observer_svc.report import ConsumerLag, RelayBacklog, Report
from observer_svc.states import find_worst

Row = tuple[str, ...]

DISK_FREE_SHARE_MIN = 0.1
"""Of a disk, below which it is nearly full."""


def format_report(report: Report) -> str:
    """Write a line for each consumer and topic, one for each relay, and what is wrong besides."""
    consumers = [("consumer", "topic", "lag", "by partition", "state"), *to_rows(report.consumers)]
    relays = [("relay", "rows", "oldest", "loop", "state"), *map(to_row, report.relays)]
    problems = list(list_problems(report))
    lines = [*align(consumers), "", *align(relays), *([""] if problems else []), *problems]
    return "".join(f"{line}\n" for line in lines)


def to_rows(consumers: Iterable[ConsumerLag]) -> Iterable[Row]:
    for (consumer, topic), group in groupby(
        consumers, key=lambda each: (each.place.consumer, each.place.topic)
    ):
        partitions = sorted(group, key=lambda each: each.place.partition)
        yield (
            consumer,
            topic,
            f"{sum(each.lag for each in partitions):,}",
            " ".join(str(each.lag) for each in partitions),
            find_worst(each.state for each in partitions),
        )


def to_row(relay: RelayBacklog) -> Row:
    backlog = relay.backlog
    beat = "never" if backlog.beat_seconds is None else f"{backlog.beat_seconds:.1f} s ago"
    return relay.name, f"{backlog.rows:,}", f"{backlog.seconds:.1f} s", beat, relay.state


def align(rows: Sequence[Row]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def list_problems(report: Report) -> Iterable[str]:
    for each in report.parked:
        if each.count.streams:
            yield (
                f"streams parked by {each.consumer}: {each.count.streams}, the first of them"
                f" {each.count.seconds:.0f} s ago"
            )
    disk = report.disk
    if disk is not None and disk.free < DISK_FREE_SHARE_MIN * disk.size:
        yield f"the disk of DATA_FOLDER is nearly full: {disk.free >> 20:,} MiB are free"
    for server, reason in report.servers.items():
        if reason is not None:
            yield f"{server} cannot be measured: {reason}"
