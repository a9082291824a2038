"""How the engine's output is parsed, and what the verbs report without an engine."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from subprocess import CompletedProcess
from time import monotonic
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from containers import __main__ as containers
from containers import faults, rolling
from containers.compose import APIS, OUTSIDE, PROFILES, PUBLISHED, Container, Project, as_container
from containers.footprint import Memory, as_bytes, as_figures, as_memory, as_table
from containers.rolling import replace
from containers.rotation import renew
from containers.settings import ContainerSettings
from containers.status import describe, status
from containers.tools import stopped
from containers.up import up
from fetching.errors import Failure
from local_stack import issuer
from local_stack.hometown import HOMETOWN
from local_stack.order_log import LoggedLine
from local_stack.postgres import dsn
from local_stack.run_folder import RunFolder, load_passwords
from local_stack.settings import CHECKOUT, Settings, Way, usual_run_dir
from local_stack.stack_spec import StackContext

PROCESSES = {process.name: process for process in HOMETOWN.processes}


def container(**words: object) -> Container:
    usual = {
        "process": "users-api",
        "service": "users-api",
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

    line = {**said, "ExitCode": 0, "Publishers": ports}
    assert as_container(line, rank=1) == container()
    assert as_container({**line, "Publishers": None}, rank=1).port is None
    assert as_container(line, rank=2).process == "users-api-2"


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


def test_a_container_on_request_can_be_down() -> None:
    assert describe("comparison", None, on_request=True).is_fine


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


CLUSTER = {
    "services": {
        **{name: {"restart": "unless-stopped"} for name in ("kafka", "kafka-2", "spark-worker-1")},
        "users-api": {"restart": "unless-stopped", "deploy": {"replicas": 2}},
        "users-relay": {"restart": "unless-stopped", "deploy": {"replicas": 2}},
        "comparison": {"restart": "unless-stopped", "profiles": ["compare"]},
        "topics": {"restart": "on-failure:5"},
        "users-tool": {"restart": "no", "profiles": ["tools"]},
    }
}
"""Some of the containers of a cluster, as `docker compose config` shows them."""


def reported(service: str, number: int = 1, state: str = "running") -> dict[str, object]:
    """What `docker compose ps` shows of a container; a dead one has no health."""
    return {
        "Service": service,
        "ID": f"{service}-{number}",
        "Name": f"hometown-{service}-{number}",
        "State": state,
        "Health": "healthy" if state == "running" else "",
        "ExitCode": 0 if state == "running" else 137,
        "Publishers": None,
    }


class Engine:
    """Docker with some containers, which does at once what it is asked for."""

    proxied = "users-api"
    usable_max = 2
    """Of the containers of this API, those that the proxy can find."""

    def __init__(self, *containers: dict[str, object]) -> None:
        self.containers = {str(each["ID"]): each for each in containers}
        self.fewest = len(self.containers)
        """The smallest number of containers that ran at one time."""
        self.stopped: list[str] = []
        self.refused = ""
        """A command that fails and does nothing."""

    def run(self, command: Sequence[str], **options: object) -> "CompletedProcess[str]":
        output = ""
        self.fewest = min(self.fewest, self._count_running(""))
        if self.refused in command:
            return CompletedProcess(command, 1, "", "")
        match [word for word in command if word not in ("compose", "--profile", "*")]:
            case ["docker", "ps", *_]:
                output = "\n".join(map(json.dumps, self.containers.values()))
            case ["docker", "config", *_]:
                output = json.dumps(CLUSTER)
            case ["docker", "stop", service]:
                self.stopped.append(service)
                self._report(service, [each for each in self.containers if service in each])
            case ["docker", "start", *ids]:
                self._report("", ids)
            case ["docker", "rm", "--volumes", removed]:
                del self.containers[removed]
            case ["docker", "up", "--detach", *_, service]:
                numbers = [int(each.rpartition("-")[2]) for each in self.containers]
                new = reported(service, max(numbers, default=0) + 1)
                self.containers[str(new["ID"])] = new
            case ["docker", "exec", *_]:
                output = f"{min(self._count_running(self.proxied), self.usable_max)}\n"
        return CompletedProcess(command, 0, output, "")

    def _count_running(self, service: str) -> int:
        return sum(
            each["State"] == "running" and service in str(each["Service"])
            for each in self.containers.values()
        )

    def _report(self, stopped: str, ids: Sequence[str]) -> None:
        for each in ids:
            service, _, number = each.rpartition("-")
            state = "exited" if stopped else "running"
            self.containers[each] = reported(service, int(number), state)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Project:
    """A cluster in which a broker, a replica and a worker have died, and a replica is gone."""
    engine = Engine(
        reported("kafka"),
        reported("kafka-2", state="exited"),
        reported("spark-worker-1", state="exited"),
        reported("users-api"),
        reported("users-api", 2, state="exited"),
        reported("users-relay"),
        reported("topics", state="exited"),
    )
    monkeypatch.setattr(subprocess, "run", engine.run)
    return project("cluster")


def test_every_container_that_is_dead_or_gone_is_reported(cluster: Project) -> None:
    found = {each.name: each for each in status(cluster)}

    assert {name: each.state for name, each in found.items()} == {
        **{name: "ready" for name in ("kafka", "users-api", "users-relay")},
        **{name: "dead" for name in ("kafka-2", "spark-worker-1", "users-api-2")},
        **{name: "stopped" for name in ("users-relay-2", "comparison")},
    }
    assert {name for name, each in found.items() if not each.is_fine} == {
        *("kafka-2", "spark-worker-1", "users-api-2", "users-relay-2")
    }


def test_a_tool_that_runs_without_a_process_restarts_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Engine(
        *(reported("users-relay", number) for number in (1, 2)),
        reported("users-relay", 3, state="exited"),
    )
    monkeypatch.setattr(subprocess, "run", engine.run)
    cluster = project("cluster")

    with stopped(cluster, "users-relay"):
        assert {each.state for each in cluster.containers().values()} == {"exited"}

    after = {name: each.state for name, each in cluster.containers().items()}
    assert after == {
        "users-relay": "running",
        "users-relay-2": "running",
        "users-relay-3": "exited",
    }


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine with two containers of an API and the proxy."""
    engine = Engine(*(reported("users-api", number) for number in (1, 2)), reported("proxy", 3))
    monkeypatch.setattr(subprocess, "run", engine.run)
    return engine


def test_containers_are_replaced_one_after_the_other(replaced: Engine, tmp_path: Path) -> None:
    cluster = project("cluster", run_dir=tmp_path)

    replace(cluster, "users-api")

    assert {each.id for each in cluster.containers().values()} == {
        *("users-api-4", "users-api-5", "proxy-3")
    }
    assert set(cluster.containers()) == {"users-api", "users-api-2", "proxy"}
    assert replaced.fewest == len(replaced.containers) - 1


def test_the_second_container_is_kept_until_the_proxy_has_found_the_first(
    replaced: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rolling, "NOTICE_SECONDS_MAX", 0)
    replaced.usable_max = 1

    with pytest.raises(Failure, match="sends requests to 1 of users-api, 2 are ready"):
        replace(project("cluster", run_dir=tmp_path), "users-api")

    assert set(replaced.containers) == {"users-api-2", "users-api-4", "proxy-3"}


@pytest.mark.parametrize(
    ("name", "is_reported"), [("users-api", True), ("users-relay", False)], ids=["api", "relay"]
)
def test_an_api_with_one_container_is_reported_to_refuse_requests(
    name: str,
    is_reported: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(subprocess, "run", Engine(reported(name)).run)

    replace(project(run_dir=tmp_path), name)

    printed = capsys.readouterr().out
    assert "replaced after" in printed
    assert ("refuses requests until" in printed) == is_reported
    assert ("requests to it were refused" in printed) == is_reported


def test_the_proxy_takes_a_new_certificate_over_while_it_serves(
    replaced: Engine, tmp_path: Path
) -> None:
    cluster = project("cluster", run_dir=tmp_path)

    for each in cluster.containers().values():
        renew(cluster, each)

    assert replaced.stopped == ["users-api-1", "users-api-2"]
    assert replaced.fewest == len(replaced.containers) - 1


def find_running(cluster: Project) -> set[str]:
    return {name for name, each in cluster.containers().items() if each.state == "running"}


@pytest.mark.usefixtures("replaced")
def test_one_container_is_stopped_for_that_long_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = project("cluster", run_dir=tmp_path)
    waits: list[tuple[float, set[str]]] = []

    def sleep(seconds: float) -> None:
        waits.append((seconds, find_running(cluster)))

    monkeypatch.setattr(faults, "time", SimpleNamespace(sleep=sleep, monotonic=monotonic))
    faults.stop(cluster, "users-api-2", 3)

    assert waits == [(3, {"users-api", "proxy"})]
    assert find_running(cluster) == {"users-api", "users-api-2", "proxy"}


@pytest.mark.usefixtures("replaced", "usual_signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_an_interrupted_stop_starts_the_container_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def interrupt(_name: str, _seconds: float) -> None:
        signal.raise_signal(number)

    cluster = project("cluster", run_dir=tmp_path)
    monkeypatch.setattr(faults, "report_stopped", interrupt)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        faults.stop(cluster, "users-api", 3)

    assert find_running(cluster) == {"users-api", "users-api-2", "proxy"}


@pytest.mark.usefixtures("replaced")
def test_a_container_that_does_not_end_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "RESTART_SECONDS_MAX", 0)
    with pytest.raises(Failure, match="users-api does not end: `make status in=cluster`"):
        faults.kill(project("cluster", run_dir=tmp_path), "users-api")


@pytest.mark.parametrize("name", ["kafka-2", "users-api-2", "no-such-process"])
def test_a_container_that_does_not_run_is_neither_killed_nor_stopped(
    cluster: Project, name: str
) -> None:
    before = find_running(cluster)
    with pytest.raises(Failure, match=f"{name} does not run here: `make status in=cluster`"):
        faults.kill(cluster, name)
    with pytest.raises(Failure, match=f"{name} does not run here: `make status in=cluster`"):
        faults.stop(cluster, name, 3)
    assert find_running(cluster) == before


def test_nothing_runs_without_a_process_that_cannot_be_stopped(replaced: Engine) -> None:
    replaced.refused = "stop"
    with (
        pytest.raises(Failure, match="users-api cannot be stopped"),
        stopped(project("cluster"), "users-api"),
    ):
        pytest.fail("the tool ran")


KEYS = {"secrets.json": '{"users": "of containers"}', "issuer-key.pem": "of containers"}

DOCKER = """#!/bin/sh
case "$*" in
    "ps --all --filter label=com.docker.compose.project="*) echo "$CHECKOUTS_OF_PROJECT" ;;
    "volume ls"*) echo "$VOLUMES_OF_PROJECT" ;;
    *" cp "*)
        for target in "$@"; do :; done
        cp "$KEYS_OF_CONTAINERS"/* "$target" ;;
    *" logs --no-color"*)
        printf '%b\\n' 'users-api-1  | {"a": "b | c"}' '\033[2K\033[2Kkafka-1 | started' 'odd' ;;
esac
"""
"""An engine in which everything is healthy at once; it has the keys of a stack."""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, program = tmp_path / "keys", tmp_path / "bin" / "docker"
    keys.mkdir()
    for name, text in KEYS.items():
        (keys / name).write_text(text)
    program.parent.mkdir()
    program.write_text(DOCKER)
    program.chmod(0o755)
    monkeypatch.setenv("KEYS_OF_CONTAINERS", str(keys))
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("verb", ["up", "clean"])
def test_containers_leave_the_secrets_of_processes_alone(
    verb: str,
    folder: RunFolder,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    load_passwords(folder, ("users",))
    issuer.establish(folder)
    (folder / "postgres").mkdir()
    before = contents(folder.path)
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(folder.path))
    monkeypatch.setattr(sys, "argv", ["containers", verb])

    assert containers.main() == 1

    assert "has the files of a stack in=processes" in capsys.readouterr().err
    assert contents(folder.path).items() >= before.items()


@pytest.mark.usefixtures("engine")
def test_the_keys_of_containers_are_copied_into_their_own_folder(tmp_path: Path) -> None:
    up(ContainerSettings(run_dir=tmp_path / "run", ports="free", ports_given={}))

    assert contents(tmp_path / "run").items() >= KEYS.items()


def test_each_way_of_running_has_a_folder_of_its_own(tmp_path: Path) -> None:
    folders = {way: usual_run_dir(way, tmp_path) for way in get_args(Way)}
    assert len(set(folders.values())) == len(folders)

    (tmp_path / "postgres").mkdir()  # data of when the folder was the only one
    assert usual_run_dir("processes", tmp_path) == tmp_path
    assert usual_run_dir("containers", tmp_path) == folders["containers"]


def project(way: Way = "containers", **settings: Any) -> Project:
    settings = {"run_dir": usual_run_dir(way), **settings}
    given = ContainerSettings(HOMETOWN_IN=way, ports_given={}, **settings)
    return Project(settings=given, ports={"kafka": 19093})


def test_each_checkout_way_and_run_folder_is_a_project_of_its_own(tmp_path: Path) -> None:
    one = project(run_dir=tmp_path / "one")
    all_of_them = [
        *(one, project(run_dir=tmp_path / "other")),
        *(project(way) for way in ("containers", "cluster")),
    ]

    assert len({each.name for each in all_of_them}) == len(all_of_them)
    assert one.environment["COMPOSE_PROJECT_NAME"] == one.name
    assert one.environment["HOMETOWN_PORT_KAFKA"] == "19093"


def test_a_cluster_has_its_own_compose_file_whatever_that_of_containers_is() -> None:
    given: dict[str, Any] = {"COMPOSE_FILE": "mine.yml"}

    assert project(**given).environment["COMPOSE_FILE"] == "mine.yml"
    assert project("cluster", **given).environment["COMPOSE_FILE"] == "docker-compose.cluster.yml"


def test_before_the_first_start_nothing_is_rotated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["containers", "rotate", "certificates"])

    assert containers.main() == 1

    printed = capsys.readouterr().err
    assert printed == "hometown: nothing runs here: `make up in=containers`, then again\n"


def test_without_containers_there_is_no_lag_to_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Project, "containers", lambda _: {})
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["containers", "lag"])

    assert containers.main() == 1

    printed = capsys.readouterr().err
    assert printed == "hometown: nothing runs here: `make up in=containers`, then again\n"


def test_with_tls_the_addresses_of_apis_are_https(monkeypatch: pytest.MonkeyPatch) -> None:
    schemes = {port.name: port.scheme for port in project().published}
    monkeypatch.setenv("HOMETOWN_TLS", "on")
    with_tls = {port.name: port.scheme for port in project().published}

    assert {name for name in schemes if schemes[name] != with_tls[name]} == set(APIS)
    assert {with_tls[name] for name in APIS} == {"https://"}
    assert project().environment["HOMETOWN_TLS"] == "on"


def test_make_starts_no_demonstration(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests count what they place themselves, and `make demo` shows the sample."""
    monkeypatch.setenv("HOMETOWN_DEMO", "1")

    assert project().environment["HOMETOWN_DEMO"] == "0"


def test_with_tls_tools_outside_verify_postgres(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMETOWN_TLS", "on")

    found = dsn(context_of("containers", folder), "users")

    assert found.endswith(f"/users?sslmode=verify-full&sslrootcert={folder.authority}")
    assert "sslmode" not in dsn(context_of("processes", folder), "users")


def context_of(way: Way, folder: RunFolder) -> StackContext:
    return StackContext(
        settings=Settings(HOMETOWN_IN=way, run_dir=folder.path, ports_given={}),
        folder=folder,
        ports={"postgres": 15432},
        passwords={"users": "p"},
    )


def test_a_name_that_is_given_is_that_of_the_checkouts_own_stack(tmp_path: Path) -> None:
    given: dict[str, Any] = {"COMPOSE_PROJECT_NAME": "mine"}

    assert project(**given).name == "mine"
    assert project("cluster", **given).name == "mine-cluster"
    assert project(run_dir=tmp_path, **given).name == project(run_dir=tmp_path).name


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("checkouts", "volumes", "is_refused"),
    [
        ("", "", False),
        (str(CHECKOUT), "mine_postgres", False),
        ("/another/checkout", "mine_postgres", True),
        ("", "mine_postgres", True),
    ],
)
def test_a_project_of_another_checkout_is_refused(
    checkouts: str,
    volumes: str,
    is_refused: bool,
    folder: RunFolder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CHECKOUTS_OF_PROJECT", checkouts)
    monkeypatch.setenv("VOLUMES_OF_PROJECT", volumes)

    with pytest.raises(Failure, match="the project mine ") if is_refused else nullcontext():
        project(COMPOSE_PROJECT_NAME="mine").claim(folder)
    if not is_refused:
        monkeypatch.setenv("CHECKOUTS_OF_PROJECT", "")
        monkeypatch.setenv("VOLUMES_OF_PROJECT", "mine_postgres")
        project(COMPOSE_PROJECT_NAME="mine").demand_own(folder)


@pytest.mark.usefixtures("engine")
def test_lines_of_containers_have_the_name_of_their_process() -> None:
    assert list(project().log_lines()) == [
        LoggedLine("users-api-1", '{"a": "b | c"}'),
        LoggedLine("kafka-1", "started"),
        LoggedLine("odd", ""),
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["up"],
        ["down"],
        ["status"],
        ["logs"],
        ["footprint"],
        ["run", "users", "rebuild"],
    ],
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
