"""A folder on a disk that is full: writes fail, metrics show it, and later there is room again."""

import asyncio
import errno
import os
import shutil
from pathlib import Path

import pytest

from local_stack.down import stop_together
from local_stack.kafka import KAFKA
from local_stack.stack_spec import StackSpec
from local_stack.testing import throwaway_stack
from local_stack.tools import stopped
from observer_svc.log_dirs import read_disks
from shared.runtime import disks
from shared.runtime.brokers import Brokers
from test_support.alerting.promql import Samples
from test_support.alerting.rules import Alerts
from verification.drill.small_disk import (
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


def test_what_is_left_of_a_small_disk_is_measured_and_fires_the_alert(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    try:
        move_to_small_disk(folder)
    except NoSmallDisk as error:
        pytest.skip(str(error))
    try:
        assert fire(folder) == set()
        with filled(folder):
            assert fire(folder) == {"DiskNearlyFull"}
        assert fire(folder) == set()
    finally:
        discard_small_disk(folder)


def test_a_broker_reports_the_disk_of_its_log() -> None:
    """Its free bytes follow what is written there, by whomever."""
    with throwaway_stack(StackSpec(processes=(KAFKA,))) as context:
        log = context.folder / "kafka" / "data"
        brokers = Brokers(context.address("kafka"))
        try:
            with stopped(context, KAFKA):
                move_to_small_disk(log)
        except NoSmallDisk as error:
            pytest.skip(str(error))
        try:
            before = disks.measure(log)
            [reported] = asyncio.run(read_disks(brokers)).values()
            assert before is not None
            assert reported.size == before.size < 1 << 30
            assert abs(reported.free - before.free) < 1 << 20
            with filled(log):
                [reported] = asyncio.run(read_disks(brokers)).values()
                assert reported.free == 0
        finally:
            stop_together(context.folder, [KAFKA])
            discard_small_disk(log)


def test_a_disk_of_a_folder_that_is_not_there_yet_is_that_of_the_folder_above(
    tmp_path: Path,
) -> None:
    found = disks.measure(tmp_path / "spark" / "checkpoint")

    assert found is not None
    assert found.size == shutil.disk_usage(tmp_path).total


def fire(folder: Path) -> set[str]:
    """The alerts that fire for this disk."""
    disk = disks.measure(folder)
    assert disk is not None
    samples, alerts = Samples(), Alerts()
    fired = set[str]()
    for at in (0, 30):
        samples.add(at, "hometown_disk_free_bytes", {"disk": "spark"}, disk.free)
        samples.add(at, "hometown_disk_size_bytes", {"disk": "spark"}, disk.size)
        fired = set(alerts.evaluate(samples, at))
    return fired
