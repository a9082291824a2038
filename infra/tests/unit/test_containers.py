"""How the engine's output is parsed, and what the verbs report without an engine."""

import sys
from pathlib import Path

import pytest

from containers import __main__ as containers
from containers.compose import OUTSIDE, PROFILES, PUBLISHED, Container, Project, as_container
from containers.footprint import Memory, as_bytes, as_figures, as_memory, as_table
from containers.status import describe
from local_stack.hometown import HOMETOWN
from local_stack.settings import CHECKOUT, Settings

PROCESSES = {process.name: process for process in HOMETOWN.processes}


def container(**words: object) -> Container:
    usual = {
        "process": "users-api",
        "id": "4f5a",
        "state": "running",
        "health": "healthy",
        "exit_status": 0,
        "port": 8001,
    }
    return Container(**{**usual, **words})  # type: ignore[arg-type]


def test_a_line_of_the_engine_is_a_container() -> None:
    ports = [{"PublishedPort": 0}, {"PublishedPort": 8001}]
    said = {"Service": "users-api", "ID": "4f5a", "State": "running", "Health": "healthy"}

    first, second = ({**said, "ExitCode": 0, "Name": f"hometown-users-api-{n}"} for n in (1, 2))
    assert as_container({**first, "Publishers": ports}) == container()
    assert as_container({**first, "Publishers": None}).port is None
    assert as_container({**second, "Publishers": ports}).process == "users-api-2"


@pytest.mark.parametrize(
    ("found", "state", "is_fine"),
    [
        (container(), "ready", True),
        (container(health="starting"), "starting", False),
        (container(health="unhealthy"), "not ready", False),
        (container(state="exited", health="", exit_status=137), "dead", False),
        (None, "stopped", False),
    ],
)
def test_a_state_is_reported_like_that_of_any_process(
    found: Container | None, state: str, is_fine: bool
) -> None:
    status = describe("users-api", found)

    assert (status.state, status.is_fine) == (state, is_fine)


def test_a_dead_container_is_reported_with_its_exit_code() -> None:
    assert "status 137" in describe("users-api", container(state="exited", exit_status=137)).reason


@pytest.mark.parametrize("name", PROFILES)
def test_a_container_on_request_can_be_down(name: str) -> None:
    assert describe(name, None).is_fine


def test_every_published_port_is_one_of_the_stack() -> None:
    replicas = {"kafka-2", "kafka-3"}
    assert {port.name for port in PUBLISHED} == replicas | set(OUTSIDE)
    assert PROFILES.keys() <= PROCESSES.keys()


@pytest.mark.parametrize(
    ("text", "size"), [("0B", 0), ("1.5KiB", 1536), ("716.3MiB ", 751_094_989), ("2GiB", 1 << 31)]
)
def test_a_size_is_read(text: str, size: int) -> None:
    assert as_bytes(text) == size


@pytest.mark.parametrize("text", ["", "--", "12", "1.5 parsec"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        as_bytes(text)


def test_memory_is_a_table_and_figures() -> None:
    used = as_memory({"ID": "4f5a", "MemUsage": "10MiB / 256MiB"}, {"4f5a": "users-api"})
    whole = Memory(name="all", used=2 * used.used, limit=used.limit)

    assert "10 MiB" in as_table([used, whole])
    assert [(each.name, each.value, each.ratio) for each in as_figures([used, whole])] == [
        ("users-api", 10.0, 0.5),
        ("all", 20.0, 1.0),
    ]


def test_each_run_folder_is_a_project_of_its_own(tmp_path: Path) -> None:
    usual, one, other = (
        Project(settings=Settings(run_dir=folder, ports_given={}), ports={"kafka": 19093})
        for folder in (CHECKOUT / ".run", tmp_path / "one", tmp_path / "other")
    )

    assert usual.name is None
    assert one.name != other.name
    assert one.environment["COMPOSE_PROJECT_NAME"] == one.name
    assert one.environment["HOMETOWN_PORT_KAFKA"] == "19093"


@pytest.mark.parametrize(
    "words", [["up"], ["down"], ["status"], ["logs"], ["footprint"], ["run", "users", "rebuild"]]
)
def test_without_docker_every_verb_reports_it(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["containers", *words])

    assert containers.main() == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line == "hometown: there is no docker here: install it, or leave out in=containers"


def test_a_command_of_no_service_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["containers", "run", "user", "rebuild"])

    assert containers.main() == 1
    assert "there is no service user here" in capsys.readouterr().err
