"""What editors and hooks run exists, and what they show is what the project declares."""

import json
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_stack.hometown import HOMETOWN
from scripts import devcontainer
from shared.runtime.declarations import load_declarations, services_dir

CHECKOUT = services_dir()
VERBS = set(re.findall(r"^([a-z0-9-]+):.*## ", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))
RUN_SECONDS_MAX = 60


def read(name: str) -> Any:
    """JSON with lines of comments."""
    return json.loads(re.sub(r"^//.*\n", "", (CHECKOUT / name).read_text(), flags=re.MULTILINE))


TASKS = {task["label"]: task["command"] for task in read(".vscode/tasks.json")["tasks"]}
HOOKS = {
    hook["id"]: hook
    for repository in yaml.safe_load((CHECKOUT / ".pre-commit-config.yaml").read_text())["repos"]
    for hook in repository["hooks"]
}


def demand_runs(command: str) -> None:
    """Raises AssertionError for a verb, a program or a module that does not exist."""
    program, *words = command.split()
    if program == "make":
        assert {word for word in words if not word.startswith("-")} <= VERBS
    else:
        assert program == ".venv/bin/python"
        assert words[0] == "-m"
        assert find_spec(words[1])


@pytest.mark.parametrize("command", [*TASKS.values(), *(each["entry"] for each in HOOKS.values())])
def test_what_is_called_exists(command: str) -> None:
    demand_runs(command)


@pytest.mark.parametrize("command", ["make ups", "python -m pytest", ".venv/bin/python -m pytests"])
def test_what_does_not_exist_is_found(command: str) -> None:
    """The negative control."""
    with pytest.raises(AssertionError):
        demand_runs(command)


def test_there_is_a_task_for_what_a_developer_does_all_day() -> None:
    assert {"up", "dev", "check", "demo", "test of this file"} <= TASKS.keys()
    for label, command in TASKS.items():
        assert command == f"make {label}" or label == "test of this file"


def test_the_debugger_starts_modules_that_exist() -> None:
    for each in read(".vscode/launch.json")["configurations"]:
        assert each["request"] == "attach" or find_spec(each["module"])


def test_the_interpreter_is_that_of_setup() -> None:
    path = read(".vscode/settings.json")["python.defaultInterpreterPath"]

    assert path == "${workspaceFolder}/.venv/bin/python"


def test_the_container_is_up_to_date() -> None:
    """`make generate` brings it up to date."""
    text = devcontainer.generate(load_declarations(), CHECKOUT)

    assert (CHECKOUT / devcontainer.FILE).read_text() == text


def test_the_container_forwards_the_ports_that_are_looked_at() -> None:
    container = read(devcontainer.FILE)
    usual = {port.name: port.default for port in HOMETOWN.ports}
    public = {each.name for each in load_declarations().processes if each.public}

    forwarded = set(container["forwardPorts"])

    assert forwarded == {usual[name] for name in {*public, "jaeger", "prometheus"}}
    assert forwarded == {int(port) for port in container["portsAttributes"]}
    assert container["postCreateCommand"].removeprefix("make ") in VERBS
    assert container["postAttachCommand"].removeprefix("make ") in VERBS


def test_the_oldest_python_is_the_one_of_development() -> None:
    [oldest] = re.findall(
        r'^requires-python = ">=([\d.]+)"', (CHECKOUT / "pyproject.toml").read_text(), re.MULTILINE
    )

    assert (CHECKOUT / ".python-version").read_text() == f"{oldest}\n"
    assert f"python:{oldest}-" in read(devcontainer.FILE)["image"]


@pytest.mark.parametrize(
    ("hook", "before", "after", "status"),
    [
        ("format", "x = {  'a':1 }\n", 'x = {"a": 1}\n', 0),
        ("format", "x = (\n", "x = (\n", 2),
        ("lint", "import os\n", "", 0),
        ("lint", "x = undefined\n", "x = undefined\n", 1),
    ],
)
def test_a_hook_changes_or_refuses_a_file(
    hook: str, before: str, after: str, status: int, tmp_path: Path
) -> None:
    file = tmp_path / "some_module.py"
    file.write_text(before)

    ended = subprocess.run(
        [*HOOKS[hook]["entry"].split(), file],
        cwd=CHECKOUT,
        capture_output=True,
        timeout=RUN_SECONDS_MAX,
    )

    assert (ended.returncode, file.read_text()) == (status, after)
