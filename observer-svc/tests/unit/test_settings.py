"""The folders whose disks are measured, as a setting that a file of a supervisor can hold."""

from pathlib import Path

import pytest

from observer_svc.settings import WatchSettings


def test_folders_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092")
    monkeypatch.setenv("DISK_FOLDERS", "postgres=/var/lib/postgresql,other=/a=b")

    found = WatchSettings().disk_folders

    assert found == {"postgres": Path("/var/lib/postgresql"), "other": Path("/a=b")}


def test_there_can_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092")

    assert WatchSettings().disk_folders == {}
