"""Where Java's cache of Spark's classes is, and the error when it cannot be made."""

import os
from pathlib import Path

import pytest

from fetching import aot_cache
from fetching.errors import Failure


def test_another_java_has_another_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "java"
    java.touch()
    monkeypatch.setattr(aot_cache, "JAVA", java)
    before = aot_cache.file_of()
    assert aot_cache.file_of() == before

    os.utime(java, ns=(1, 1))

    assert aot_cache.file_of() != before


def test_one_that_is_there_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "there.aot"
    cache.touch()
    monkeypatch.setattr(aot_cache, "file_of", lambda: cache)
    told: list[str] = []

    assert aot_cache.make(told.append) == cache
    assert told == []


def test_those_of_earlier_packages_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, cache = tmp_path / "spark-before.aot", tmp_path / "spark-now.aot"
    before.touch()
    monkeypatch.setattr(aot_cache, "file_of", lambda: cache)
    monkeypatch.setattr(aot_cache, "run", Path.touch)

    aot_cache.make(lambda _: None)

    assert [each.name for each in tmp_path.glob("*.aot")] == ["spark-now.aot"]


def test_a_failure_is_one_line(tmp_path: Path) -> None:
    nowhere = tmp_path / "missing" / "spark.aot"
    with pytest.raises(Failure, match=r"^no cache of Spark's classes: .*No such file.*$"):
        aot_cache.run(nowhere)
