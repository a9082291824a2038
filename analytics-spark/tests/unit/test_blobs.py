"""Tables as bytes: the same again, marked with their form, and another form is refused."""

import pyarrow as pa
import pytest

from analytics_spark.job import blobs
from analytics_spark.job.blobs import OtherStateVersion, from_bytes, to_bytes
from test_support.analytics.histories import registered, sample
from test_support.analytics.small_job import SmallJob

TABLE = pa.table({"hour": [1, 2], "address": ["BJ", None]})


def test_a_table_is_the_same_again() -> None:
    assert from_bytes(to_bytes(TABLE)).equals(TABLE)


def test_bytes_from_before_the_mark_are_read() -> None:
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, TABLE.schema) as writer:
        writer.write_table(TABLE)

    assert from_bytes(stream.getvalue().to_pybytes()).equals(TABLE)


def test_state_of_another_version_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = SmallJob().read(*sample())
    monkeypatch.setattr(blobs, "STATE_VERSION", 2)

    with pytest.raises(
        OtherStateVersion, match=r"of version 1, and this job reads version 2: .*make reprocess"
    ):
        job.read(registered("Tom", "BJ"))
