"""The command line: a failure is one line, never a stack trace."""

import sys
from pathlib import Path

import pytest

from local_stack.__main__ import main
from local_stack.hometown import HOMETOWN
from local_stack.stack_spec import StackSpec

NOTHING = StackSpec(processes=())


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["local_stack", *arguments])
    return main(NOTHING)


def test_a_failure_is_one_line_on_standard_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(tmp_path / "file" / "run"))
    assert run(monkeypatch, "up") == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("hometown: cannot write to the run folder")


@pytest.mark.parametrize(
    ("variable", "value"), [("HOMETOWN_PORTS", "many"), ("HOMETOWN_PORT_KAFKA", "nine")]
)
def test_a_malformed_setting_is_one_line(
    variable: str,
    value: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, value)
    assert run(monkeypatch, "status") == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("hometown: a setting is malformed")
    assert value in line


def test_nothing_to_stop_and_nothing_to_remove_is_harmless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(tmp_path / "never"))
    assert run(monkeypatch, "down") == 0
    assert run(monkeypatch, "clean") == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["run users rebuild --check", "lag"])
def test_what_a_running_stack_answers_needs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(tmp_path / "never"))
    monkeypatch.setattr(sys, "argv", ["local_stack", *words.split()])
    assert main(HOMETOWN) == 1
    assert capsys.readouterr().err == "hometown: nothing runs here: `make up`, then again\n"
    assert list(tmp_path.iterdir()) == []


def test_a_command_of_no_service_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["local_stack", "run", "user", "rebuild"])
    assert main(HOMETOWN) == 1
    services = ", ".join(tool.name for tool in HOMETOWN.tools)
    assert services.startswith("users, orders, analytics")
    assert capsys.readouterr().err == (
        f"hometown: there is no service user here: one of {services}\n"
    )


@pytest.mark.parametrize(
    "verb", ["up", "down", "status", "logs", "run", "token", "clean", "footprint", "fetch"]
)
def test_every_verb_explains_itself(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        run(monkeypatch, verb, "--help")
    assert f"local_stack {verb}" in capsys.readouterr().out
