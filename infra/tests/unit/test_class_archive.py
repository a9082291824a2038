"""Where Java's class archive is, and the error when it cannot be made."""

import os
from pathlib import Path

import pytest

from fetching import class_archive
from fetching.errors import Failure
from fetching.java import find_java
from local_stack.settings import Settings


def test_another_java_has_another_archive(tmp_path: Path, settings: Settings) -> None:
    java = tmp_path / "java"
    java.touch()
    before = class_archive.file_of(java, settings)
    assert class_archive.file_of(java, settings) == before

    os.utime(java, ns=(1, 1))

    assert class_archive.file_of(java, settings) != before


def test_one_that_is_there_is_not_made_again(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "there.jsa"
    archive.touch()
    monkeypatch.setattr(class_archive, "file_of", lambda *_: archive)
    told: list[str] = []

    assert class_archive.make(settings, told.append) == archive
    assert told == []


def test_a_failure_is_one_line(tmp_path: Path) -> None:
    nowhere = tmp_path / "missing" / "classes.jsa"
    with pytest.raises(Failure, match=r"^no archive of Spark's classes: .*No such file.*$"):
        class_archive.run(find_java(), [str(nowhere), "--jars", str(tmp_path)])
