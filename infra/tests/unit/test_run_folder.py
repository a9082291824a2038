"""The run folder: what is secret, what is whole, what is refused."""

import json
import os
import stat
from pathlib import Path

import pytest

from fetching.errors import Failure
from local_stack.run_folder import RunFolder, load_passwords, read_json, write_atomically


def test_passwords_are_made_once_and_readable_by_their_owner_only(folder: RunFolder) -> None:
    first = load_passwords(folder, ("users",))
    again = load_passwords(folder, ("users", "orders"))
    assert again["users"] == first["users"]
    assert again["orders"] != again["users"]
    assert stat.S_IMODE(folder.secrets.stat().st_mode) == 0o600
    assert json.loads(folder.secrets.read_text()) == again


def test_a_file_that_is_not_there_reads_as_nothing(folder: RunFolder) -> None:
    assert read_json(folder.addresses) is None


def test_writing_leaves_nothing_but_the_file(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", "old")
    write_atomically(tmp_path / "a", "new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]


def test_what_is_put_into_place_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a power cut would leave an empty file of that name."""
    steps: list[object] = []
    sync, replace = os.fsync, os.replace

    def note_sync(descriptor: int) -> None:
        sync(descriptor)
        steps.append(os.fstat(descriptor).st_size)

    def note_replace(made: str, path: Path) -> None:
        replace(made, path)
        steps.append(path.name)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_replace)
    write_atomically(tmp_path / "a", "new")

    assert steps == [len("new"), "a"]


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Failure, match=r"^cannot write to the run folder .* set HOMETOWN_RUN_DIR"):
        RunFolder(tmp_path / "file" / "run").create()


def test_two_verbs_do_not_work_in_one_folder(folder: RunFolder) -> None:
    with (
        folder.locked(),
        pytest.raises(Failure, match="another command is starting or stopping"),
        folder.locked(),
    ):
        pass
    with folder.locked():
        pass


def test_the_socket_of_a_long_path_lies_elsewhere_and_is_removed_too(tmp_path: Path) -> None:
    short, long = RunFolder(tmp_path), RunFolder(tmp_path / ("x" * 100))
    assert short.supervisor_socket.parent == short.path or len(str(tmp_path)) > 80
    assert len(str(long.supervisor_socket)) < 100
    long.create()
    assert stat.S_IMODE(long.supervisor_socket.parent.stat().st_mode) == 0o700
    long.remove()
    assert not long.path.exists()
    assert not long.supervisor_socket.parent.exists()


def test_a_folder_with_data_of_before_is_one_of_processes(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()

    RunFolder(tmp_path).claim("processes")

    with pytest.raises(Failure, match="has the files of a stack in=processes"):
        RunFolder(tmp_path).demand("containers")


def test_a_run_folder_inside_of_a_removed_one_is_kept(tmp_path: Path) -> None:
    outer, inner = RunFolder(tmp_path / "run"), RunFolder(tmp_path / "run" / "containers")
    for folder, way in ((outer, "processes"), (inner, "containers")):
        folder.create()
        folder.claim(way)

    outer.remove()

    assert [path.name for path in outer.path.iterdir()] == ["containers"]
    assert inner.way == "containers"
    inner.remove()
    outer.remove()
    assert not outer.path.exists()


def test_removing_what_is_not_there_is_harmless(tmp_path: Path) -> None:
    RunFolder(tmp_path / "never").remove()
