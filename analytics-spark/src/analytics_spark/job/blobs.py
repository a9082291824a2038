"""Arrow tables as bytes: how tables cross the shuffle and are stored in state."""

import pyarrow as pa

STATE_VERSION = 1
"""The version of the columns of all stored tables. Increase it with a change after which old bytes
cannot be read: another name, type or meaning of a column, but not a new optional column."""

VERSION_KEY = b"form"
"""The key of the version in a table's schema metadata. Stored in checkpoints: never rename it."""

UNMARKED_VERSION = 1
"""The version of bytes that were written before they were marked."""


class OtherStateVersion(Exception):
    """The bytes were written by another release; the message has the ways out."""

    def __init__(self, version: int) -> None:
        super().__init__(
            f"the checkpoint has state of version {version}, and this job reads version"
            f" {STATE_VERSION}: run the release that wrote it, or count from the beginning with"
            " `make reprocess args=--switch`"
        )


def to_bytes(table: pa.Table) -> bytes:
    """The table as an Arrow IPC stream, marked with the state version."""
    stream = pa.BufferOutputStream()
    schema = table.schema.with_metadata({VERSION_KEY: str(STATE_VERSION).encode()})
    with pa.ipc.new_stream(stream, schema) as writer:
        writer.write_table(table)
    content: bytes = stream.getvalue().to_pybytes()
    return content


def from_bytes(blob: bytes) -> pa.Table:
    """The table of an Arrow IPC stream, without a copy of its columns.

    Raises:
        OtherStateVersion: the bytes have another version than STATE_VERSION.
    """
    stream = pa.ipc.open_stream(pa.py_buffer(blob))
    version = int((stream.schema.metadata or {}).get(VERSION_KEY, UNMARKED_VERSION))
    if version != STATE_VERSION:
        raise OtherStateVersion(version)
    return stream.read_all()


def column(table: pa.Table, name: str) -> pa.Array:
    """A column as one contiguous array."""
    chunked = table[name]
    return chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()
