"""Containers are confined: no root, nothing writable, no foreign secret, no needless port."""

import json
import re
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from containers.compose import OUTSIDE, Project
from containers.settings import ContainerSettings
from containers.up import down
from local_stack import issuer
from local_stack.run_folder import read_json
from test_support.system.bytes_on_disk import found_in
from test_support.system.clients import rfc3339
from test_support.system.container_stack import ContainerStack
from test_support.system.stack import CHECKOUT, ORDER_TIMEOUT_SECONDS, RECONCILE_SECONDS, Stack
from test_support.waits import HANGS_AFTER_SECONDS

Inspected = Mapping[str, Any]

LAYER = re.compile(r"blobs/sha256/[0-9a-f]{64}")
IMAGES_BYTES_MAX = 1_200_000_000
MEMORY_MEBIBYTES_MAX = 3_072
OWN_IMAGES = (
    *("hometown/infra", "hometown/users-svc", "hometown/orders-svc"),
    *("hometown/analytics-spark", "hometown/analytics-faust", "hometown/load"),
    "hometown/demo",
)
NO_SECRET = b"hometown-development"
"""The name of the issuer is in the code, to show that the scan finds something."""
RUN_ELSEWHERE = ["docker compose up", "docker compose down"]
ROOT_FILE = "/written-by-a-test"


@pytest.fixture(scope="module")
def project(stack: Stack) -> Project:
    assert isinstance(stack, ContainerStack)
    return stack.project


@pytest.fixture(scope="module")
def inspected(project: Project) -> Mapping[str, Inspected]:
    """The output of `docker inspect` for each running container, by its process."""
    running = {
        container.id: name
        for name, container in project.containers().items()
        if container.state == "running"
    }
    said = json.loads(project.docker("inspect", *running))
    return dict(zip(running.values(), said, strict=True))


@pytest.fixture(scope="module")
def secrets(stack: Stack) -> list[bytes]:
    """All values that must stay in the volume of secrets."""
    key = issuer.private_key(stack.folder).read_text().splitlines()[1:-1]
    return [each.encode() for each in (*read_json(stack.folder.secrets).values(), *key)]


def test_no_process_runs_as_root(inspected: Mapping[str, Inspected], project: Project) -> None:
    assert len(inspected) >= len(OUTSIDE)
    for name, said in inspected.items():
        assert said["HostConfig"]["CapDrop"] == ["ALL"], name
        assert "no-new-privileges:true" in said["HostConfig"]["SecurityOpt"], name
        assert not said["HostConfig"]["Privileged"], name
        assert project.output("exec", "--no-TTY", name, "id", "-u").strip() != "0", name


def test_each_process_writes_to_its_own_folders_only(
    inspected: Mapping[str, Inspected], project: Project
) -> None:
    for name, said in inspected.items():
        assert said["HostConfig"]["ReadonlyRootfs"], name
        command = ("exec", "--no-TTY", "--user", "0", name, "touch", ROOT_FILE)
        assert project.call(*command) != 0, f"{name}: even root cannot write there"


def test_every_container_has_limits(inspected: Mapping[str, Inspected]) -> None:
    for name, said in inspected.items():
        host = said["HostConfig"]
        assert host["Memory"] > 0, name
        assert host["LogConfig"]["Config"]["max-size"] == "10m", name
        assert host["RestartPolicy"]["Name"] == "unless-stopped", name
        assert said["Config"]["Healthcheck"]["Test"], name


def test_only_the_declared_ports_are_open_and_only_to_this_machine(
    inspected: Mapping[str, Inspected],
) -> None:
    doors = {
        name: [binding for bindings in ports.values() for binding in bindings or ()]
        for name, said in inspected.items()
        if (ports := said["NetworkSettings"]["Ports"])
    }
    open_doors = {name: bindings for name, bindings in doors.items() if bindings}

    assert open_doors.keys() == set(OUTSIDE) & inspected.keys()
    assert {each["HostIp"] for bindings in open_doors.values() for each in bindings} == {
        "127.0.0.1"
    }
    assert all(len(bindings) == 1 for bindings in open_doors.values())


def test_no_environment_contains_a_secret(
    inspected: Mapping[str, Inspected], project: Project, secrets: Sequence[bytes]
) -> None:
    said = json.dumps(inspected)
    seen = {name: project.output("exec", "--no-TTY", name, "env") for name in inspected}

    assert "KAFKA_BOOTSTRAP_SERVERS=kafka:9092" in seen["users-relay"]
    telling = [
        name
        for name, text in (*seen.items(), ("inspect", said))
        if any(secret.decode() in text for secret in secrets)
    ]
    assert telling == []


def test_a_setting_reaches_the_process_that_it_is_for(project: Project) -> None:
    def variables(name: str) -> list[str]:
        return project.output("exec", "--no-TTY", name, "env").splitlines()

    assert f"ORDER_TIMEOUT_SECONDS={ORDER_TIMEOUT_SECONDS}" in variables("orders-worker")
    assert f"ORDER_TIMEOUT_SECONDS={ORDER_TIMEOUT_SECONDS}" in variables("orders-api")
    assert f"RECONCILE_SECONDS={RECONCILE_SECONDS}" in variables("analytics-reconciler")


def test_a_process_sees_its_own_secrets_alone(project: Project) -> None:
    def files(name: str) -> list[str]:
        return project.output("exec", "--no-TTY", name, "ls", "/run/secrets").split()

    assert files("users-api") == ["database_url", "jwks.json", "personal_data_key"]
    assert files("orders-api") == ["database_url", "jwks.json"]
    assert files("users-relay") == ["authority.pem", "database_url", "kafka_password"]


@contextmanager
def saved(images: Sequence[str]) -> Iterator[tarfile.TarFile]:
    """The images as one archive, which contains shared layers once."""
    with subprocess.Popen(["docker", "save", *images], stdout=subprocess.PIPE) as saving:
        assert saving.stdout is not None
        with tarfile.open(fileobj=saving.stdout, mode="r|") as archive:
            yield archive
        assert saving.wait(HANGS_AFTER_SECONDS) == 0


def test_our_images_are_small_and_hold_no_secret(
    project: Project, secrets: Sequence[bytes]
) -> None:
    """Layer by layer, as a file that a later layer removes is still in the earlier one."""
    size, found = 0, set()
    # All of them now: one of an older build has layers that no other image shares.
    assert project.call("build", "--quiet") == 0
    with saved(OWN_IMAGES) as archive:
        for member in archive:
            if LAYER.fullmatch(member.name):
                size += member.size
                layer = archive.extractfile(member)
                assert layer is not None
                found |= set(found_in(layer, [*secrets, NO_SECRET]))

    assert found == {NO_SECRET}
    assert size <= IMAGES_BYTES_MAX


def test_a_process_that_starts_again_starts_nothing_else(stack: Stack, project: Project) -> None:
    def last_run(name: str) -> str:
        container = project.containers()[name]
        return project.docker("inspect", "--format", "{{.State.StartedAt}}", container.id)

    relay, topics = last_run("users-relay"), last_run("topics")
    with stack.stopped("users-relay"):
        pass

    assert last_run("users-relay") != relay
    assert last_run("topics") == topics


def test_clean_removes_everything(tmp_path: Path) -> None:
    """`make clean` leaves nothing of a stack that has created its secrets."""
    project = Project(
        settings=ContainerSettings(run_dir=tmp_path / "run", ports_given={}), ports={}
    )

    def left() -> list[str]:
        label = f"label=com.docker.compose.project={project.name}"
        kinds = (("ps", "--all"), ("volume", "ls"), ("network", "ls"))
        return [
            line
            for kind in kinds
            for line in project.docker(*kind, "--quiet", "--filter", label).split()
        ]

    project.output("up", "secrets")
    assert left()
    assert down(project) == 0
    kept = left()
    assert down(project, "--volumes") == 0

    assert f"{project.name}_secrets" in kept
    assert left() == []


@pytest.mark.parametrize("verb", ["up", "clean"])
def test_processes_leave_the_secrets_of_containers_alone(stack: Stack, verb: str) -> None:
    before = read_json(stack.folder.secrets)

    ended = stack.make(verb, "in=processes")

    assert ended.returncode != 0
    assert "has the files of a stack in=containers" in ended.stderr
    assert read_json(stack.folder.secrets) == before


@pytest.mark.parametrize("load", [[], ["rate=20", "seconds=10"]], ids=["rest", "load"])
def test_memory_is_small(stack: Stack, load: Sequence[str], gap: datetime) -> None:
    if load:
        stack.make_output("load", f"gap={rfc3339(gap)}", *load)

    stack.make_output("footprint")

    figures = read_json(stack.folder / "bench" / "footprint.json")
    [whole] = [figure["value"] for figure in figures if figure["name"] == "all"]
    assert 0 < whole <= MEMORY_MEBIBYTES_MAX


def test_the_commands_of_the_document_work(stack: Stack, project: Project, gap: datetime) -> None:
    """All but two, which `test_compose_up.py` runs; load in hours of this test."""
    document = (CHECKOUT / "docs" / "containers.md").read_text()
    commands = re.findall(r"^docker compose [^#\n]+?(?= *(?:#|$))", document, re.MULTILINE)

    assert len(commands) > len(RUN_ELSEWHERE)
    # With other settings, `up` would create the containers again.
    environment = {**stack.variables, **project.environment}
    for command in commands:
        if command not in RUN_ELSEWHERE:
            words = command.split() + (["--gap", rfc3339(gap)] if " load " in command else [])
            subprocess.run(words, cwd=CHECKOUT, env=environment, check=True)
