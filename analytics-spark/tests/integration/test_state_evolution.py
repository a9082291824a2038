"""Which changes of the operator can read the state of before, and which are refused with a line."""

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from analytics_spark.job import query
from analytics_spark.job.job import get_cause
from analytics_spark.job.parts import NUMBER, STATE_NAME, USERS_PART, Parts
from analytics_spark.job.processor import CellDeltas
from test_support.analytics.histories import HOUR, at, confirmed, moved, sample
from test_support.analytics.running_job import RunningJob

NOTED = StructType([StructField("blob", BinaryType()), StructField("note", StringType())])
NOTE = StructType([StructField("note", StringType())])


class NotedParts(Parts):
    """Parts with a note next to each blob."""

    def put(self, number: int, blob: bytes) -> None:
        self._state.updateValue((number,), (blob, "new"))


class WithMore(CellDeltas):
    """The operator of a later release: one more variable, and one more field of another one."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._parts = NotedParts(handle.getMapState(STATE_NAME, NUMBER, NOTED))
        self._notes = handle.getValueState("notes", NOTE)

    def _apply(self, *arguments: Any) -> dict[str, object]:
        self._notes.update(("seen",))
        return super()._apply(*arguments)


class MarkedParts(Parts):
    """Parts of which the users have the mark of a later form."""

    def put(self, number: int, blob: bytes) -> None:
        super().put(number, mark(blob) if number == USERS_PART else blob)


def mark(blob: bytes) -> bytes:
    table = pa.ipc.open_stream(blob).read_all()
    schema = table.schema.with_metadata({b"form": b"2"})
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, schema) as writer:
        writer.write_table(table)
    return bytes(stream.getvalue())


class OfLaterForm(CellDeltas):
    """The operator of a release that keeps other tables."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._parts = MarkedParts.open(handle)


@pytest.fixture(autouse=True)
def _sent_to_workers() -> Iterator[None]:
    """Spark's workers cannot import this file, so they are sent what is in it."""
    here = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(here)  # type: ignore[no-untyped-call]
    yield
    cloudpickle.unregister_pickle_by_value(here)  # type: ignore[no-untyped-call]


def test_state_with_a_new_variable_and_a_new_field_is_read(
    live: RunningJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.read(*sample())

    monkeypatch.setattr(query, "CellDeltas", WithMore)
    live.read(
        *sample(),
        moved("Jack", "SH", since=at(30)),
        confirmed("at home again", "Jack", ("ipad", 1), ordered_at=at(31)),
    )

    assert live.hour(HOUR) == (4, 5, 13, 49_395_44)
    assert live.epoch("duplicates") == 16


def test_state_of_a_later_version_is_refused_with_one_line(
    live: RunningJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as later:
        later.setattr(query, "CellDeltas", OfLaterForm)
        live.read(*sample())

    with pytest.raises(StreamingQueryException) as raised:
        live.read(moved("Jack", "SH", since=at(30)))

    assert "has state of version 2, and this job reads version 1" in get_cause(raised.value)
    assert live.hour(HOUR)[:2] == (4, 4)
