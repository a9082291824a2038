"""Where Java's cache of Spark's classes is, and the error when it cannot be made."""

import os
from pathlib import Path

import pytest

from fetching import aot_cache
from fetching.errors import Failure
from local_stack.settings import Settings


def test_another_java_has_another_cache(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "java"
    java.touch()
    monkeypatch.setattr(aot_cache, "JAVA", java)
    before = aot_cache.file_of(settings)
    assert aot_cache.file_of(settings) == before

    os.utime(java, ns=(1, 1))

    assert aot_cache.file_of(settings) != before


def test_one_that_is_there_is_not_made_again(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "there.aot"
    cache.touch()
    monkeypatch.setattr(aot_cache, "file_of", lambda *_: cache)
    told: list[str] = []

    assert aot_cache.make(settings, told.append) == cache
    assert told == []


def test_a_failure_is_one_line(tmp_path: Path) -> None:
    nowhere = tmp_path / "missing" / "spark.aot"
    with pytest.raises(Failure, match=r"^no cache of Spark's classes: .*No such file.*$"):
        aot_cache.run([str(nowhere), "--jars", str(tmp_path)])
