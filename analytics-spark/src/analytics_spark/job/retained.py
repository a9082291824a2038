"""The orders of one bucket that can still be corrected, in chunks of Spark's state."""

import numpy as np
import pyarrow as pa

from analytics_spark.job.blobs import column, from_bytes, to_bytes
from analytics_spark.job.parts import INDEX_PART, Parts
from analytics_spark.job.versions import Integers, Mask

SMALL_CHUNK_ROWS = 2_000
"""A last chunk below this is extended, so that short triggers do not make thousands of chunks."""


class RetainedOrders:
    """Chunks of order lines as they came, and an index with one row for each chunk.

    A chunk has orders, not the values they were joined with: the contribution of an order is a
    function of the order and of the tables, and so is its correction.

    An index row is number, first and last order time (milliseconds), lines. The index is read by
    the constructor, and written by `save`.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._index: Integers = np.frombuffer(parts.get(INDEX_PART) or b"", np.int64).reshape(-1, 4)

    def find_affected(self, times: Integers, since: int | None) -> dict[int, pa.Table]:
        """The chunks that can have an order of one of these times, or any order from `since` on."""
        number, first, last, _ = self._index.T
        times = np.sort(times)
        hit: Mask = np.searchsorted(times, last, "right") > np.searchsorted(times, first, "left")
        if since is not None:
            hit |= last >= since
        return {int(chunk): self._load(int(chunk)) for chunk in number[hit]}

    def replace(self, chunk: int, lines: pa.Table) -> None:
        """Replace the lines of a chunk."""
        self._parts.put(chunk, to_bytes(lines))

    def append(self, lines: pa.Table) -> None:
        """Store new lines, at least one."""
        chunk = int(self._index[-1, 0]) + 1 if len(self._index) else 0
        if len(self._index) and self._index[-1, 3] < SMALL_CHUNK_ROWS:
            chunk = int(self._index[-1, 0])
            lines = pa.concat_tables([self._load(chunk), lines]).combine_chunks()
            self._index = self._index[:-1]
        times = column(lines, "ordered_at").to_numpy()
        self.replace(chunk, lines)
        self._index = np.vstack([self._index, [[chunk, times.min(), times.max(), len(times)]]])

    def evict(self, watermark: int) -> None:
        """Remove the chunks without an order newer than the watermark (milliseconds)."""
        dead = self._index[:, 2] <= watermark
        for chunk in self._index[dead, 0]:
            self._parts.remove(int(chunk))
        self._index = self._index[~dead]

    def save(self) -> None:
        self._parts.put(INDEX_PART, self._index.tobytes())

    def _load(self, chunk: int) -> pa.Table:
        blob = self._parts.get(chunk)
        assert blob is not None  # the index has only stored chunks
        return from_bytes(blob)
