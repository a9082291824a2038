"""The pinned lists, and the errors when a fetch fails."""

import errno
import hashlib
import os
import re
from pathlib import Path

import pytest

from fetching import jars
from fetching.errors import Failure
from fetching.jars import KAFKA_JARS, SPARK_JARS, STREAMS_JARS, Jar, JarList
from local_stack.settings import Settings


def jar_of(content: bytes) -> Jar:
    return Jar(
        sha256=hashlib.sha256(content).hexdigest(),
        organisation="org.example",
        name="thing",
        version="1.0",
    )


@pytest.mark.parametrize(
    ("listed", "count"), [(KAFKA_JARS, 47), (SPARK_JARS, 4), (STREAMS_JARS, 8)]
)
def test_every_jar_is_pinned_by_version_and_checksum(listed: JarList, count: int) -> None:
    entries = listed.read()
    assert len({jar.file_name for jar in entries}) == count
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in entries)
    assert all(re.match(r"\d", jar.version) for jar in entries)


def test_kafka_streams_has_the_kafka_client_of_the_stack() -> None:
    ours = {(jar.organisation, jar.name): jar for jar in KAFKA_JARS.read()}
    both = [jar for jar in STREAMS_JARS.read() if (jar.organisation, jar.name) in ours]
    assert [ours[jar.organisation, jar.name] for jar in both] == both
    assert "kafka-clients" in {jar.name for jar in both}


def test_another_list_has_another_folder(tmp_path: Path, settings: Settings) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("one")
    second.write_text("two")
    folders = {JarList(name="x", path=path).folder(settings) for path in (first, second)}
    assert len(folders) == 2


def test_a_wrong_checksum_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "thing-1.0.jar").write_bytes(b"something else")
    with pytest.raises(Failure, match=r"^thing-1\.0\.jar has the checksum \w{12}… instead of"):
        jars.verify([jar_of(b"right")], tmp_path)


def test_a_full_disk_while_jars_are_moved_leaves_nothing_behind(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(jars, "download", full)
    with pytest.raises(Failure, match="no space left in"):
        jars.fetch(SPARK_JARS, settings, lambda _: None)
    assert list(settings.cache_dir.iterdir()) == []
