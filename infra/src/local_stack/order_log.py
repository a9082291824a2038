"""The lines of all logs about one order: what was recorded, published, consumed and counted.

An order's own lines have its id as `stream_id`. Those of other streams that follow from it, such as
a user's credit, have the same `correlation_id`. A relay, or the job, writes one line for a batch:
it is about the order if the batch has a record that a worker has consumed for it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from fetching.errors import Failure
from shared.runtime import log_lines
from shared.runtime.log_lines import MESSAGE, TIME

OFFSETS = '"offsets":'
"""Is in the lines of batches."""

Fields = Mapping[str, Any]


class LoggedLine(NamedTuple):
    """A line of a log, as it is, and the process that wrote it."""

    process: str
    text: str


Parsed = tuple[Fields, LoggedLine]

Read = Callable[[], Iterable[LoggedLine]]
"""Reads all lines from the first one on."""


def find(read: Read, order_id: str) -> Sequence[LoggedLine]:
    """The lines about an order, by their time.

    Raises:
        Failure: that is no id, or no line is about such an order.
    """
    try:
        wanted = str(UUID(order_id))
    except ValueError:
        raise Failure(f"order={order_id} is no id of an order") from None
    words = {wanted, *find_correlations(read(), wanted)}
    about: list[Parsed] = []
    batches: list[Parsed] = []
    for line in read():
        is_named = any(word in line.text for word in words)
        if is_named or OFFSETS in line.text:
            fields = log_lines.parse(line.text)
            if fields is not None:
                (about if is_named else batches).append((fields, line))
    if not about:
        raise Failure(
            f"no line of a log is about an order {wanted}: it is older than the logs, or was not"
            " placed here; with LOG_LEVEL=WARNING or LOG_FORMAT=text there are none"
        )
    about.sort(key=get_time)
    records = [fields for fields, _ in about if "offset" in fields]
    about += select_batches(sorted(batches, key=get_time), records, since=about[0])
    return [line for _, line in sorted(about, key=get_time)]


def find_correlations(lines: Iterable[LoggedLine], stream_id: str) -> set[str]:
    """The ids of the stories in which something was recorded in a stream, or consumed of it."""
    found = (log_lines.parse(line.text) for line in lines if stream_id in line.text)
    return {
        fields["correlation_id"]
        for fields in found
        if fields and fields.get("stream_id") == stream_id and "correlation_id" in fields
    }


def select_batches(
    batches: Iterable[Parsed], records: Sequence[Fields], since: Parsed
) -> Iterator[Parsed]:
    """Select those that have one of the records, for each record the first of a kind: a topic that
    was lost and made again has the same offsets once more. `batches` are sorted by time."""
    found: set[tuple[str, int]] = set()
    for batch in batches:
        of_this = {
            (batch[0][MESSAGE], number)
            for number, record in enumerate(records)
            if get_time(batch) >= get_time(since) and has(batch[0], record)
        }
        if of_this - found:
            found |= of_this
            yield batch


def get_time(parsed: Parsed) -> str:
    return str(parsed[0][TIME])


def has(batch: Fields, record: Fields) -> bool:
    """Whether a record is in a batch: `offsets` are [first, end] by topic and partition."""
    partitions = batch.get("offsets", {}).get(record["topic"], {})
    first, end = partitions.get(str(record["partition"]), (0, 0))
    return bool(first <= record["offset"] < end)
