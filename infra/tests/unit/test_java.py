"""Which Java is found, and the errors when it does not fit."""

from pathlib import Path

import pytest

from fetching.errors import Failure
from fetching.java import find_java, major_version


def install_java(home: Path, version: str) -> Path:
    """A program that only prints its version."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_402"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=y\nopenjdk version "25.0.1"', 25),
        ("The operation could not be completed", None),
    ],
)
def test_the_version_is_read_in_both_its_forms(text: str, major: int | None) -> None:
    assert major_version(text) == major


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_home = install_java(tmp_path / "home", "21.0.1")
    on_path = install_java(tmp_path / "usr", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(on_path.parent), prepend=":")
    assert find_java() == at_home
    monkeypatch.delenv("JAVA_HOME")
    assert find_java() == on_path


def test_a_missing_java_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        Failure, match=r"^no Java found: install Java 17 or newer, or set JAVA_HOME$"
    ):
        find_java()


def test_an_old_java_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_java(tmp_path, "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Failure, match=r"is Java 11, which is too old: install Java 17"):
        find_java()


def test_a_java_that_cannot_run_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_java(tmp_path, "17.0.1").chmod(0o644)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Failure, match="does not report its version"):
        find_java()
