"""A folder on a disk that is full: writes fail, and later there is room again."""

import errno
import os
from pathlib import Path

import pytest

from observer_svc.disk import Disk, measure
from verification.drill.small_disk import (
    ROOM_BYTES,
    NoSmallDisk,
    discard_small_disk,
    filled,
    move_to_small_disk,
)


def test_a_small_disk_is_full_and_then_gone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (folder / "before").write_text("before")
    try:
        move_to_small_disk(folder)
    except NoSmallDisk as error:
        assert (folder / "before").exists(), "nothing is changed where nothing can be mounted"
        pytest.skip(str(error))

    try:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert (folder / "before").read_text() == "before"
        no_space = os.strerror(errno.ENOSPC)
        with filled(folder), pytest.raises(OSError, match=no_space):
            (folder / "full").write_text("full")
        (folder / "after").write_text("after")
    finally:
        discard_small_disk(folder)

    assert not folder.is_mount()
    assert list(tmp_path.iterdir()) == [folder]


def test_what_is_left_of_a_small_disk_is_measured(tmp_path: Path) -> None:
    """The observer names a disk that is nearly full."""
    folder = tmp_path / "data"
    folder.mkdir()
    try:
        move_to_small_disk(folder)
    except NoSmallDisk as error:
        pytest.skip(str(error))
    try:
        before = measure(folder)
        with filled(folder):
            full = measure(folder)
        after = measure(folder)
    finally:
        discard_small_disk(folder)

    assert before is not None
    assert full == Disk(free=0, size=before.size)
    assert before == after
    assert 0 < before.free <= before.size <= 2 * ROOM_BYTES
