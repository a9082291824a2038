"""Where the processes of a stack are, as processes of this machine and in containers."""

import json
from pathlib import Path

import pytest

from console_svc.settings import ConsoleSettings
from console_svc.stack import ContainerStack, NoControl, ProcessStack, find_stack

ADDRESSES = {
    "postgres": "127.0.0.1:15432",
    "console": "http://127.0.0.1:8000",
    "users-api": "http://127.0.0.1:8001",
    "jaeger": "http://127.0.0.1:16686",
}


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "addresses.json").write_text(json.dumps(ADDRESSES))
    (tmp_path / "logs").mkdir()
    line = {"time": "2026-11-25T00:00:00Z", "level": "info", "message": "listening"}
    (tmp_path / "logs/users-api.log").write_text(f"first\n{json.dumps(line)}\n")
    return tmp_path


def test_processes_are_where_the_run_folder_says(run_dir: Path) -> None:
    stack = find_stack(ConsoleSettings(run_dir=run_dir))

    assert isinstance(stack, ProcessStack)
    assert {each.name: each.url for each in stack.entries} == {
        **{name: ADDRESSES[name] for name in ("console", "users-api", "jaeger")},
        "postgres": None,
    }
    assert stack.read_programs() == {}


def test_the_end_of_a_log_is_text(run_dir: Path) -> None:
    stack = ProcessStack(run_dir)

    [line] = stack.read_log("users-api", 1)
    assert "listening" in line
    assert not line.startswith("{")
    assert stack.read_log("users-worker", 1) == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_containers_call_each_other_by_name_and_a_browser_by_the_published_port(
    scheme: str,
) -> None:
    stack = ContainerStack({"users-api": f"{scheme}://127.0.0.1:9001"}, scheme)
    entries = {each.name: each for each in stack.entries}

    assert entries["users-api"].url == f"{scheme}://users-api:8000"
    assert entries["users-api"].link == f"{scheme}://127.0.0.1:9001"
    assert entries["users-relay"].url == "http://users-relay:8000"
    assert entries["users-relay"].link is None


def test_containers_are_not_controlled_from_here() -> None:
    stack = find_stack(ConsoleSettings())

    assert not stack.can_control
    for act in (stack.kill, stack.stop, stack.start):
        with pytest.raises(NoControl, match=f"docker compose {act.__name__} users-relay"):
            act("users-relay")
