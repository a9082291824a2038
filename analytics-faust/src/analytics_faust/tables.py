"""Faust tables on RocksDB whose writes can be waited for."""

from collections.abc import Awaitable, Iterator
from typing import Any, Generic, TypeVar

import faust

V = TypeVar("V")

ROCKSDB = {
    "driver": "rocksdict",
    "block_cache_size": 8 << 20,
    "write_buffer_size": 4 << 20,
    "max_write_buffer_number": 2,
    "max_open_files": 64,
}
"""For each partition of each table. Faust's own defaults are a cache of 2 GiB and buffers of
192 MiB."""

RECOVERED_AT_ONCE = 1000
"""Records of a changelog that are written to RocksDB together."""


class Table(Generic[V]):
    """A table of JSON values with text keys.

    Faust's `table[key] = value` sends the change without reporting whether it arrived. Here a write
    is done when its change is acknowledged; the record that led to it must not be acknowledged
    earlier. Reads and writes use the partition of the current record.
    """

    def __init__(self, app: faust.App, name: str, *, partitions: int) -> None:
        self.faust = app.Table(
            name,
            key_type=str,
            partitions=partitions,
            recovery_buffer_size=RECOVERED_AT_ONCE,
            options=dict(ROCKSDB),
        )

    def get(self, key: str) -> V | None:
        value: V | None = self.faust.data.get(key)
        return value

    def put(self, key: str, value: V) -> Awaitable[object]:
        """Store a value: locally at once, in the changelog when the result is awaited.

        After a crash in between, only the local value is there, and its record is read again: so a
        repeat that leads to the same value must write it again.
        """
        self.faust.data[key] = value
        changed: Awaitable[object] = self.faust.send_changelog(
            self.faust.partition_for_key(key), key, value
        )
        return changed

    def remove(self, key: str) -> Awaitable[object]:
        """Remove a key, like `put` with a tombstone."""
        self.faust.data.pop(key, None)
        changed: Awaitable[object] = self.faust.send_changelog(
            self.faust.partition_for_key(key), key, None, value_serializer="raw"
        )
        return changed

    def items(self) -> Iterator[tuple[str, Any]]:
        """All entries in the partitions assigned to this worker."""
        yield from self.faust.data.items()
