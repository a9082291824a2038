"""Arrow tables as bytes: the form in which tables cross the shuffle and rest in state."""

import pyarrow as pa


def to_bytes(table: pa.Table) -> bytes:
    """The table as an Arrow IPC stream."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    content: bytes = stream.getvalue().to_pybytes()
    return content


def from_bytes(blob: bytes) -> pa.Table:
    """The table of an Arrow IPC stream, without a copy of its columns."""
    return pa.ipc.open_stream(pa.py_buffer(blob)).read_all()


def column(table: pa.Table, name: str) -> pa.Array:
    """A column as one contiguous array."""
    chunked = table[name]
    return chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()
