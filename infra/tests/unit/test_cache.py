"""The cache: whole or not there, also when two checkouts fill it at once."""

import errno
import os
from pathlib import Path

import pytest

from fetching.cache import WORKSHOP_SECONDS_MAX, disk_failure, publish, workshop


def make(folder: Path, content: str) -> Path:
    made = folder / "made"
    made.mkdir()
    (made / "file").write_text(content)
    return made


def test_what_was_made_is_published_and_nothing_else_stays(tmp_path: Path) -> None:
    with workshop(tmp_path) as folder:
        publish(make(folder, "whole"), tmp_path / "target")
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    assert (tmp_path / "target" / "file").read_text() == "whole"


def test_what_is_published_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a power cut would leave a folder with empty files, which nothing ever makes again."""
    synced, target = [], tmp_path / "target"

    def note(descriptor: int) -> None:
        synced.append((os.fstat(descriptor).st_size, target.exists()))

    monkeypatch.setattr(os, "fsync", note)
    with workshop(tmp_path) as folder:
        publish(make(folder, "whole"), target)

    assert synced == [(len("whole"), False)]


def test_what_failed_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with workshop(tmp_path) as folder:
            make(folder, "half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_an_incomplete_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    with workshop(tmp_path) as folder:
        publish(make(folder, "whole"), tmp_path / "target")
    assert (tmp_path / "target" / "file").read_text() == "whole"
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_the_workshop_of_a_killed_process_is_swept(tmp_path: Path) -> None:
    abandoned, busy = tmp_path / ".new-abandoned", tmp_path / ".new-busy"
    abandoned.mkdir()
    busy.mkdir()
    os.utime(abandoned, (0, abandoned.stat().st_mtime - WORKSHOP_SECONDS_MAX - 1))
    with workshop(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == [busy]


def test_a_full_disk_is_one_line_with_what_is_left(tmp_path: Path) -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert str(disk_failure(error, tmp_path)).startswith(f"no space left in {tmp_path} (")


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    error = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    assert "(Permission denied): make it writable or set HOMETOWN_CACHE_DIR" in str(
        disk_failure(error, tmp_path)
    )
