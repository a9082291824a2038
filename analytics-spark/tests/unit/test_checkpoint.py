"""What the files of a checkpoint say."""

import json
from pathlib import Path

from analytics_spark.job import checkpoint

LOG = """v1
{"batchWatermarkMs":0,"batchTimestampMs":1795231772826,"conf":{}}
%s
-
%s"""


def write_offsets(folder: Path, batch_id: int, *sources: object) -> None:
    (folder / "offsets").mkdir(exist_ok=True)
    log = folder / "offsets" / str(batch_id)
    log.write_text(LOG % tuple(json.dumps(source) for source in sources))


def test_a_new_checkpoint_belongs_to_nobody(tmp_path: Path) -> None:
    assert checkpoint.query_id(tmp_path) is None

    (tmp_path / "metadata").write_text('{"id":"adf1b235-9425-490f-89b3-fff865d8fefe"}')
    assert checkpoint.query_id(tmp_path) == "adf1b235-9425-490f-89b3-fff865d8fefe"


def test_the_newest_batch_is_found_by_number(tmp_path: Path) -> None:
    assert checkpoint.newest_batch(tmp_path, "offsets") == -1

    for batch_id in (2, 9, 10):
        write_offsets(tmp_path, batch_id, {}, {})
    (tmp_path / "offsets" / ".11.crc").touch()
    assert checkpoint.newest_batch(tmp_path, "offsets") == 10


def test_a_batch_reads_from_the_end_of_the_one_before(tmp_path: Path) -> None:
    write_offsets(tmp_path, 4, {"users.v1": {"0": 2}}, {"orders.v1": {"0": 5, "1": 0}})
    write_offsets(tmp_path, 5, {"users.v1": {"0": 2}}, {"orders.v1": {"0": 8, "1": 1}})

    assert checkpoint.read_by(tmp_path, 5) == {
        "users.v1": {"0": [2, 2]},
        "orders.v1": {"0": [5, 8], "1": [0, 1]},
    }


def test_the_first_batch_reads_from_the_beginning(tmp_path: Path) -> None:
    write_offsets(tmp_path, 0, {"users.v1": {"0": 2}}, {})

    assert checkpoint.read_by(tmp_path, 0) == {"users.v1": {"0": [0, 2]}}
