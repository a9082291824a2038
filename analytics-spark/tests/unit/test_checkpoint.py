"""What the files of a checkpoint hold."""

import json
from pathlib import Path

import pytest

from analytics_spark.job import writer
from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.job.writer import NotTheWriter

LOG = """v1
{"batchWatermarkMs":0,"batchTimestampMs":1795231772826,"conf":%s}
%s
-
%s"""


def write_offsets(
    folder: Path, batch_id: int, *sources: object, partitions: int | None = None
) -> None:
    (folder / "offsets").mkdir(exist_ok=True)
    conf = {} if partitions is None else {"spark.sql.shuffle.partitions": str(partitions)}
    plan = folder / "offsets" / str(batch_id)
    plan.write_text(LOG % tuple(json.dumps(each) for each in (conf, *sources)))


def write_commit(folder: Path, batch_id: int) -> None:
    (folder / "commits").mkdir(exist_ok=True)
    (folder / "commits" / str(batch_id)).touch()


def test_a_new_checkpoint_has_no_owner(tmp_path: Path) -> None:
    assert Checkpoint(tmp_path).query_id is None

    (tmp_path / "metadata").write_text('{"id":"adf1b235-9425-490f-89b3-fff865d8fefe"}')
    assert Checkpoint(tmp_path).query_id == "adf1b235-9425-490f-89b3-fff865d8fefe"


def test_the_newest_batch_is_found_by_number(tmp_path: Path) -> None:
    assert Checkpoint(tmp_path).newest_planned == -1

    for batch_id in (2, 9, 10):
        write_offsets(tmp_path, batch_id, {}, {})
    (tmp_path / "offsets" / ".11.crc").touch()
    assert Checkpoint(tmp_path).newest_planned == 10


def test_a_batch_reads_from_the_end_of_the_one_before(tmp_path: Path) -> None:
    write_offsets(tmp_path, 4, {"users.v1": {"0": 2}}, {"orders.v1": {"0": 5, "1": 0}})
    write_offsets(tmp_path, 5, {"users.v1": {"0": 2}}, {"orders.v1": {"0": 8, "1": 1}})

    assert Checkpoint(tmp_path).get_ranges(5) == {
        "users.v1": {"0": [2, 2]},
        "orders.v1": {"0": [5, 8], "1": [0, 1]},
    }


def test_the_first_batch_reads_from_the_beginning(tmp_path: Path) -> None:
    write_offsets(tmp_path, 0, {"users.v1": {"0": 2}}, {})

    assert Checkpoint(tmp_path).get_ranges(0) == {"users.v1": {"0": [0, 2]}}


def test_a_batch_has_the_partitions_that_it_was_planned_with(tmp_path: Path) -> None:
    write_offsets(tmp_path, 0, {}, {}, partitions=2)
    write_offsets(tmp_path, 1, {}, {})

    assert Checkpoint(tmp_path).get_partitions(0) == 2
    assert Checkpoint(tmp_path).get_partitions(1) is None
    assert Checkpoint(tmp_path).get_partitions(2) is None


def test_a_batch_that_only_split_the_state_did_not_go_through_the_sink(tmp_path: Path) -> None:
    for batch_id, partitions in enumerate((2, 2, 4)):
        write_offsets(tmp_path, batch_id, {}, {}, partitions=partitions)
        write_commit(tmp_path, batch_id)

    assert [Checkpoint(tmp_path).is_rescale(batch_id) for batch_id in range(3)] == [
        False,
        False,
        True,
    ]
    assert Checkpoint(tmp_path).newest_done == 2
    assert Checkpoint(tmp_path).newest_sunk == 1


def test_a_checkpoint_with_a_source_for_each_topic_is_refused(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    writer.refuse_other_sources(checkpoint)

    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text('v1\n{}\n{"orders.v1":{"0":1},"users.v1":{"0":1}}')
    writer.refuse_other_sources(checkpoint)

    write_offsets(tmp_path, 1, {"users.v1": {"0": 2}}, {"orders.v1": {"0": 5}})
    with pytest.raises(NotTheWriter, match="make reprocess args=--switch"):
        writer.refuse_other_sources(checkpoint)
