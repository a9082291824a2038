"""A temporal table: versions of many keys, and which of them was valid at a time."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from analytics_spark.job.blobs import column, from_bytes, to_bytes

TIME_BITS = 42
"""Milliseconds since 1970 fit into 42 bits until the year 2109, which is beyond the last instant of
shared.messaging.bounds; 21 bits remain for the key."""

KEYS_MAX = 1 << (63 - TIME_BITS)
"""With more, the shift would overflow, and look-ups would find versions of other keys."""

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Versions:
    """Versions of many keys, sorted by (key, valid_from).

    The table has a dictionary-encoded column `key`, `valid_from` in milliseconds since 1970, `seq`
    and the attributes. Its bytes are read without a copy, so that a batch which changes no
    version pays nearly nothing for a large table.

    Raises:
        OverflowError: the table has more than KEYS_MAX keys.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        encoded = column(table, "key")
        self._keys = encoded.dictionary
        if len(self._keys) > KEYS_MAX:
            raise OverflowError(f"{len(self._keys)} keys in one bucket, at most {KEYS_MAX} fit")
        self._codes: Integers = encoded.indices.to_numpy().astype(np.int64)
        self._sorted: Integers = (self._codes << TIME_BITS) | column(table, "valid_from").to_numpy()

    @classmethod
    def empty(cls, attributes: Mapping[str, pa.DataType]) -> Self:
        key = pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), pa.array([], pa.string()))
        nothing = {
            "key": key,
            "valid_from": pa.array([], pa.int64()),
            "seq": pa.array([], pa.int64()),
        }
        return cls(pa.table(nothing | {name: pa.array([], t) for name, t in attributes.items()}))

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        return cls(from_bytes(blob))

    def to_bytes(self) -> bytes:
        return to_bytes(self.table)

    def merge(self, changes: pa.Table, watermark: int) -> "Versions":
        """The versions after `changes`; the highest seq wins for one (key, valid_from).

        A version that was replaced at or before the watermark (milliseconds) is removed: every
        order that can still be corrected is newer.
        """
        if changes.num_rows == 0:
            return self
        plain = self.table.set_column(0, "key", column(self.table, "key").cast(pa.string()))
        both = pa.concat_tables([plain, changes.select(plain.column_names)]).combine_chunks()
        keys = column(both, "key").dictionary_encode()
        codes = keys.indices.to_numpy().astype(np.int64)
        valid_from = column(both, "valid_from").to_numpy()
        order = np.lexsort((column(both, "seq").to_numpy(), valid_from, codes))
        codes, valid_from = codes[order], valid_from[order]
        same_key = np.append(codes[1:] == codes[:-1], False)
        next_from = np.append(valid_from[1:], 0)
        replaced = same_key & ((next_from == valid_from) | (next_from <= watermark))
        kept = both.set_column(0, "key", keys).take(pa.array(order[~replaced]))
        return Versions(kept.combine_chunks())

    def find(self, keys: pa.Array, times: Integers) -> pa.Array:
        """For each key the row of its version at that time (milliseconds); null for none."""
        if len(self._sorted) == 0:
            return pa.nulls(len(times), pa.int64())
        codes = find_codes(keys, self._keys)
        position = np.searchsorted(self._sorted, (codes << TIME_BITS) | times, side="right") - 1
        found = (codes >= 0) & (position >= 0)
        found &= self._codes[np.maximum(position, 0)] == codes
        return pa.array(position, mask=~found)

    def take(self, attribute: str, rows: pa.Array) -> pa.Array:
        """The attribute in rows returned by `find`; null where the row is null."""
        return column(self.table, attribute).take(rows)


class Changes:
    """The keys that a batch changed, and from which time on."""

    def __init__(self, changes: pa.Table) -> None:
        grouped = changes.group_by("key", use_threads=False).aggregate([("valid_from", "min")])
        self._keys = column(grouped, "key")
        self._since: Integers = column(grouped, "valid_from_min").to_numpy()
        self.first: int | None = int(self._since.min()) if len(self._since) else None
        """The earliest time (milliseconds) of a change; None without changes."""

    def touch(self, keys: pa.Array, times: Integers) -> Mask:
        """A mask: can the key's version at that time differ from before?"""
        if self.first is None:
            return np.zeros(len(times), bool)
        codes = find_codes(keys, self._keys)
        touched: Mask = (codes >= 0) & (self._since[np.maximum(codes, 0)] <= times)
        return touched


def find_codes(values: pa.Array, known: Any) -> Integers:
    """For each value its position among the known ones, -1 when it is not there."""
    found = pc.fill_null(pc.index_in(values, value_set=known), -1)
    codes: Integers = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes
