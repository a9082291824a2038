"""What the files of a checkpoint hold."""

import json
from pathlib import Path

import pytest

from analytics_spark.job.checkpoint import Checkpoint, DamagedCheckpoint

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


PLAN = LOG % ("{}", '{"orders.v1":{"0":5}}', '{"items.v1":{"0":1}}')
NOTE = 'v1\n{"nextBatchWatermarkMs":0}'


def write_whole(folder: Path, *, planned: int, done: int) -> None:
    for name, text, newest in (("offsets", PLAN, planned), ("commits", NOTE, done)):
        (folder / name).mkdir()
        for batch_id in range(newest + 1):
            (folder / name / str(batch_id)).write_text(text)


def torn_forms(text: str) -> list[bytes]:
    """What a power cut can leave of a file: nothing, a part, or blocks of zeros."""
    whole = text.encode()
    parts = [whole[:length] for length in range(len(whole))]
    return [*parts, bytes(len(whole)), whole[:7] + bytes(len(whole) - 7)]


@pytest.mark.parametrize("torn", torn_forms(PLAN))
def test_a_torn_plan_is_planned_again(tmp_path: Path, torn: bytes) -> None:
    write_whole(tmp_path, planned=3, done=2)
    (tmp_path / "offsets" / "3").write_bytes(torn)
    checkpoint = Checkpoint(tmp_path)

    checkpoint.drop_torn()

    assert (checkpoint.newest_planned, checkpoint.newest_done) == (2, 2)


@pytest.mark.parametrize("torn", torn_forms(NOTE))
def test_a_batch_whose_note_is_torn_runs_again(tmp_path: Path, torn: bytes) -> None:
    write_whole(tmp_path, planned=3, done=3)
    (tmp_path / "commits" / "3").write_bytes(torn)
    checkpoint = Checkpoint(tmp_path)

    checkpoint.drop_torn()

    assert (checkpoint.newest_planned, checkpoint.newest_done) == (3, 2)


@pytest.mark.parametrize("name", ["offsets", "commits"])
def test_files_that_are_all_unreadable_are_kept(tmp_path: Path, name: str) -> None:
    """Those of another version of Spark, or more than one that is torn: the job fails."""
    write_whole(tmp_path, planned=3, done=3)
    for batch_id in (2, 3):
        (tmp_path / name / str(batch_id)).write_bytes(b"v7")

    Checkpoint(tmp_path).drop_torn()

    assert len(list(tmp_path.glob("*/*"))) == 8


def test_whole_files_are_kept(tmp_path: Path) -> None:
    write_whole(tmp_path, planned=3, done=2)

    Checkpoint(tmp_path).drop_torn()

    assert len(list(tmp_path.glob("*/*"))) == 7


def test_a_torn_owner_is_damage_with_its_repair(tmp_path: Path) -> None:
    for torn in (b"", b'{"id":"adf1b235', b"\xff\xfe", b"{}"):
        (tmp_path / "metadata").write_bytes(torn)
        with pytest.raises(DamagedCheckpoint, match=r"is not whole, .* run `make rep"):
            Checkpoint(tmp_path).query_id  # noqa: B018
