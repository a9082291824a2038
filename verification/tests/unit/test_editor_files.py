"""What editors and hooks run exists, and what they show is what the project declares."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_stack.hometown import HOMETOWN
from scripts.documentation.reference.verbs import read_verbs
from shared.runtime.declarations import services_dir

CHECKOUT = services_dir()
VERBS = read_verbs().keys()
PRE_COMMIT = Path(sys.executable).with_name("pre-commit")
HOOKS = CHECKOUT / ".pre-commit-config.yaml"
RUN_SECONDS_MAX = 120


def read(name: str) -> Any:
    """Read JSON with lines of comments."""
    return json.loads(re.sub(r"^//.*\n", "", (CHECKOUT / name).read_text(), flags=re.MULTILINE))


CONTAINER = read(".devcontainer/devcontainer.json")
TASKS: Mapping[str, str] = {
    task["label"]: task["command"] for task in read(".vscode/tasks.json")["tasks"]
}
DEBUGGED: Mapping[str, Any] = {
    each["name"]: each for each in read(".vscode/launch.json")["configurations"]
}
COMMANDS = [
    *TASKS.values(),
    *(
        hook["entry"]
        for each in yaml.safe_load(HOOKS.read_text())["repos"]
        for hook in each["hooks"]
    ),
    CONTAINER["postCreateCommand"],
    CONTAINER["postAttachCommand"],
]


def demand_runs(command: str) -> None:
    """Raises AssertionError for a verb, a program or a module that does not exist."""
    program, *words = command.split()
    if program == "make":
        assert {word for word in words if not word.startswith("-")} <= VERBS
    else:
        assert program == ".venv/bin/python"
        assert words[0] == "-m"
        assert find_spec(words[1])


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_called_exists(command: str) -> None:
    demand_runs(command)


@pytest.mark.parametrize("command", ["make ups", "python -m pytest", ".venv/bin/python -m pytests"])
def test_what_does_not_exist_is_found(command: str) -> None:
    """The negative control."""
    with pytest.raises(AssertionError):
        demand_runs(command)


def test_a_task_has_the_name_of_its_verb() -> None:
    assert {"up", "dev", "check", "test of this file"} <= TASKS.keys()
    for label, command in TASKS.items():
        assert command == f"make {label}" or label == "test of this file"


@pytest.mark.parametrize("name", DEBUGGED)
def test_the_debugger_starts_modules_between_tasks(name: str) -> None:
    configuration = DEBUGGED[name]
    around = {configuration.get("preLaunchTask"), configuration.get("postDebugTask")}

    assert find_spec(configuration["module"])
    assert around <= {None, *TASKS}


def test_the_debugger_starts_a_verb_of_the_stack() -> None:
    configuration = DEBUGGED["process of the stack"]
    verb, process = configuration["args"]
    [asked] = read(".vscode/launch.json")["inputs"]

    ended = subprocess.run(
        [sys.executable, "-m", configuration["module"], verb, "--help"], timeout=RUN_SECONDS_MAX
    )

    assert ended.returncode == 0
    assert process == f"${{input:{asked['id']}}}"
    assert asked["default"] in {each.name for each in HOMETOWN.processes}


def test_the_interpreter_is_that_of_setup() -> None:
    path = read(".vscode/settings.json")["python.defaultInterpreterPath"]

    assert path == "${workspaceFolder}/.venv/bin/python"


def test_the_container_has_the_extensions_that_are_recommended() -> None:
    recommended = read(".vscode/extensions.json")["recommendations"]

    assert CONTAINER["customizations"]["vscode"]["extensions"] == recommended


def test_the_container_names_ports_of_the_stack() -> None:
    usual = {str(port.default): port.name for each in HOMETOWN.processes for port in each.ports}

    named = {port: about["label"] for port, about in CONTAINER["portsAttributes"].items()}

    assert named.items() <= usual.items()


def test_the_oldest_python_is_the_one_of_development() -> None:
    [oldest] = re.findall(
        r'^requires-python = ">=([\d.]+)"', (CHECKOUT / "pyproject.toml").read_text(), re.MULTILINE
    )

    assert (CHECKOUT / ".python-version").read_text() == f"{oldest}\n"
    assert f"python:{oldest}-" in CONTAINER["image"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with these hooks, the environment, and what Ruff reads of the project."""
    for name in (HOOKS.name, "pyproject.toml"):
        shutil.copy(CHECKOUT / name, tmp_path)
    (tmp_path / ".venv").symlink_to(CHECKOUT / ".venv")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True, timeout=RUN_SECONDS_MAX)
    return tmp_path


@pytest.mark.parametrize(
    ("hook", "before", "after", "passes"),
    [
        ("format", 'x = {"a": 1}\n', 'x = {"a": 1}\n', True),
        ("format", "x = {  'a':1 }\n", 'x = {"a": 1}\n', False),
        ("format", "x = (\n", "x = (\n", False),
        ("lint", "import os\n", "", False),
        ("lint", "x = undefined\n", "x = undefined\n", False),
        ("lint", "x = 1\n", "x = 1\n", True),
    ],
)
def test_a_hook_refuses_what_it_changes_or_cannot_mend(
    repository: Path, hook: str, before: str, after: str, passes: bool
) -> None:
    file = repository / "some_module.py"
    file.write_text(before)
    subprocess.run(["git", "add", file], cwd=repository, check=True, timeout=RUN_SECONDS_MAX)

    ended = subprocess.run(
        [PRE_COMMIT, "run", hook, "--files", file.name],
        cwd=repository,
        env={**os.environ, "PRE_COMMIT_HOME": str(repository / "cache")},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
    )

    assert (ended.returncode == 0, file.read_text()) == (passes, after), ended.stdout


def test_the_other_hooks_are_parts_of_check() -> None:
    makefile = (CHECKOUT / "Makefile").read_text()
    [parts] = re.findall(r"^check: (.+?) ##", makefile, re.MULTILINE)
    verbs = {words[-1] for words in map(str.split, COMMANDS) if words[:2] == ["make", "--silent"]}

    assert verbs == {"imports", "contracts-check"}
    assert verbs <= {*parts.split()}
