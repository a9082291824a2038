"""A Java compiler is found, and what it refuses is said."""

from pathlib import Path

import pytest

from fetching import java_compiler
from fetching.errors import Failure
from fetching.java_compiler import compile_java, find_java_compiler, has_java_compiler

needs_compiler = pytest.mark.skipif(not has_java_compiler(), reason="no javac")


def test_without_a_compiler_the_error_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert not has_java_compiler()
    with pytest.raises(Failure, match=f"no javac in JAVA_HOME={tmp_path},.* install a JDK"):
        find_java_compiler()


def test_the_compiler_of_java_home_comes_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = tmp_path / "bin" / "javac"
    own.parent.mkdir()
    own.write_text("")
    own.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert find_java_compiler() == str(own)


@needs_compiler
def test_programs_are_compiled_together(tmp_path: Path) -> None:
    sources = [tmp_path / "One.java", tmp_path / "Other.java"]
    sources[0].write_text("final class One { Other other; }")
    sources[1].write_text("final class Other {}")

    compile_java(sources, tmp_path, tmp_path / "classes")

    assert {path.name for path in (tmp_path / "classes").iterdir()} == {"One.class", "Other.class"}


@needs_compiler
def test_what_the_compiler_refuses_is_said(tmp_path: Path) -> None:
    source = tmp_path / "Wrong.java"
    source.write_text("final class Wrong { Unknown other; }")

    with pytest.raises(Failure, match=r"Wrong\.java does not compile") as raised:
        compile_java([source], tmp_path, tmp_path / "classes")

    assert any("Unknown" in line for line in raised.value.details)


@needs_compiler
def test_a_compiler_that_takes_too_long_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(java_compiler, "COMPILE_SECONDS_MAX", 0)
    source = tmp_path / "One.java"
    source.write_text("final class One {}")

    with pytest.raises(Failure, match=r"One\.java: not compiled within 0 s"):
        compile_java([source], tmp_path, tmp_path / "classes")


@needs_compiler
def test_options_of_another_java_do_not_hold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JDK_JAVAC_OPTIONS", "--no-such-option")
    source = tmp_path / "One.java"
    source.write_text("final class One {}")

    compile_java([source], tmp_path, tmp_path / "classes")
