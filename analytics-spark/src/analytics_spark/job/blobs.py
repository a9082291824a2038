"""Arrow tables as bytes: the form in which tables cross the shuffle and rest in state."""

import pyarrow as pa

FORM = 1
"""What the columns of all tables mean. It grows with a change that old bytes cannot be read after:
another name, type or meaning of a column, but not a new column that may be missing."""

FORM_KEY = b"form"
UNMARKED = 1
"""The form of bytes from before there was a mark."""


class OtherForm(Exception):
    """The bytes were written by another release; the message says what to do."""

    def __init__(self, form: int) -> None:
        super().__init__(
            f"the checkpoint holds tables of form {form}, and this job reads form {FORM}: run the"
            " release that wrote them, or count anew with `make reprocess args=--switch`"
        )


def to_bytes(table: pa.Table) -> bytes:
    """The table as an Arrow IPC stream, marked with its form."""
    stream = pa.BufferOutputStream()
    schema = table.schema.with_metadata({FORM_KEY: str(FORM).encode()})
    with pa.ipc.new_stream(stream, schema) as writer:
        writer.write_table(table)
    content: bytes = stream.getvalue().to_pybytes()
    return content


def from_bytes(blob: bytes) -> pa.Table:
    """The table of an Arrow IPC stream, without a copy of its columns.

    Raises:
        OtherForm: it is not of the form that is read here.
    """
    stream = pa.ipc.open_stream(pa.py_buffer(blob))
    form = int((stream.schema.metadata or {}).get(FORM_KEY, UNMARKED))
    if form != FORM:
        raise OtherForm(form)
    return stream.read_all()


def column(table: pa.Table, name: str) -> pa.Array:
    """A column as one contiguous array."""
    chunked = table[name]
    return chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()
