"""What Java is told, and what it makes of it."""

import subprocess
from pathlib import Path

from analytics_spark.session import class_sharing
from embedded.java import find_java


def test_java_is_told_of_an_archive_that_is_there(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    assert class_sharing(None, writes=False) == []
    assert class_sharing(archive, writes=False) == []
    archive.touch()
    assert class_sharing(archive, writes=False) == [f"-XX:SharedArchiveFile={archive}"]


def test_java_starts_without_an_archive_that_does_not_fit(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    archive.write_bytes(b"of another Java" * 1000)

    options = class_sharing(archive, writes=False)
    result = subprocess.run([find_java(), *options, "-version"], capture_output=True, timeout=30)

    assert result.returncode == 0
