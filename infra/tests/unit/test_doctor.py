"""scripts/doctor: what each check makes of the values of a machine, and one real run."""

import ast
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_stack import supervision
from local_stack.hometown import HOMETOWN
from local_stack.settings import CHECKOUT, usual_run_dir
from scripts.doctor import judging, machine
from scripts.doctor.__main__ import format_finding
from scripts.doctor.examination import examine
from scripts.doctor.judging import FAILURE, GB, NOTE, OK, WARNING, Finding, Holder

START = CHECKOUT / "scripts/doctor/__main__.py"
RUN_SECONDS_MAX = 120

PRETEND = """
import runpy, sys
{pretence}
runpy.run_path({path!r}, run_name="__main__")
"""

HERE = Path("/home/me/hometown/.run/processes")
OWN = Holder(name="python3", pid=7, stack=str(HERE))
OTHER_STACK = Holder(name="python3", pid=8, stack="/home/me/other/.run/processes")
FOREIGN = Holder(name="nginx", pid=9)
API = {"users-api": 8001}


def memory(
    total: float, available: float | None, way: str = "processes", runs: bool = False
) -> Finding:
    free = None if available is None else int(available * GB)
    return judging.judge_memory(int(total * GB), free, way, runs)


@pytest.mark.parametrize(
    ("finding", "level", "words"),
    [
        (judging.judge_system("Linux", "x86_64", False), OK, "Linux on x86_64"),
        (judging.judge_system("Linux", "aarch64", False), NOTE, "not tried"),
        (judging.judge_system("Darwin", "arm64", False), NOTE, "platforms.md"),
        (judging.judge_system("Darwin", "x86_64", False), WARNING, "no wheels"),
        (judging.judge_system("Linux", "riscv64", False), WARNING, "no wheels"),
        (judging.judge_system("Linux", "x86_64", True), FAILURE, "musl"),
        (judging.judge_python((3, 11, 2), True, has_uv=False), OK, "3.11.2"),
        (judging.judge_python((3, 10, 9), True, has_uv=False), FAILURE, "too old"),
        (judging.judge_python((3, 13, 1), False, has_uv=False), FAILURE, "apt-get"),
        (judging.judge_python((3, 13, 1), False, has_uv=True), OK, "3.13.1"),
        (judging.judge_program("git", (2, 39), (2, 0), "git"), OK, "2.39"),
        (judging.judge_program("git", None, (2, 0), "git"), FAILURE, "apt-get install git"),
        (judging.judge_program("make", (3, 80), (3, 81), "GNU Make"), FAILURE, "too old"),
        (judging.judge_java("25.0.2.1", False, ""), OK, "none is needed"),
        (judging.judge_java("25.0.2.1", True, "openjdk 25"), OK, "openjdk 25"),
        (judging.judge_java("25.0.2.1", True, ""), FAILURE, "rm -r .venv"),
        (judging.judge_docker((28, 1), (2, 35), "containers"), OK, "28.1"),
        (judging.judge_docker(None, None, "processes"), NOTE, "only containers need it"),
        (judging.judge_docker(None, None, "containers"), FAILURE, "start Docker"),
        (judging.judge_docker((25, 0), (2, 35), "processes"), NOTE, "too old"),
        (judging.judge_docker((25, 0), (2, 35), "cluster"), FAILURE, "too old"),
        (judging.judge_docker((26, 0), None, "containers"), FAILURE, "Compose is missing"),
        (judging.judge_docker((26, 0), (2, 25, 9), "containers"), FAILURE, "too old"),
        (memory(16, 8), OK, "8.0 of 16.0 GB"),
        (memory(16, None), OK, "16.0 GB"),
        (memory(2.9, 2.8), FAILURE, ".wslconfig"),
        (memory(16, 1.5), WARNING, "sort -rn"),
        (memory(16, 1.5, runs=True), OK, "the stack runs"),
        (memory(5.9, 5.5, way="cluster"), FAILURE, "5.0 GB"),
        (judging.judge_memory(None, None, "processes", False), WARNING, "unknown"),
        (judging.judge_cores(2), OK, "2"),
        (judging.judge_cores(1), WARNING, "2 cores"),
        (judging.judge_disk(4 * GB, False), OK, "4 GB are needed"),
        (judging.judge_disk(3 * GB, False), FAILURE, "make room"),
        (judging.judge_disk(3 * GB, True), OK, "1 GB are needed"),
        (judging.judge_disk(GB - 1, True), FAILURE, "make room"),
        (judging.judge_ports(API, {}, HERE, {}), OK, "all 1 are free"),
        (judging.judge_ports(API, {8001: OWN}, HERE, {}), OK, "the stack that runs here"),
        (judging.judge_ports(API, {8001: FOREIGN}, HERE, {}), WARNING, "nginx (pid 9)"),
        (judging.judge_ports(API, {8001: OTHER_STACK}, HERE, {}), WARNING, "/home/me/other"),
        (judging.judge_ports(API, {8001: None}, HERE, {}), WARNING, "another user"),
        (judging.judge_ports(API, {8001: FOREIGN}, HERE, API), FAILURE, "HOMETOWN_PORT_USERS_API"),
        (judging.judge_ports(API, {8001: OWN}, HERE, API), OK, "the stack that runs here"),
        (judging.judge_open_files(1024), OK, "1,024"),
        (judging.judge_open_files(-1), OK, "no limit"),
        (judging.judge_open_files(256), FAILURE, "limits.conf"),
        (judging.judge_watches(None), OK, "no limit"),
        (judging.judge_watches(8192), OK, "8,192"),
        (judging.judge_watches(1000), WARNING, "sysctl"),
        (judging.judge_wsl("6.1.0-18-amd64", HERE), OK, "not WSL"),
        (judging.judge_wsl("5.15.90.1-microsoft-standard-WSL2", HERE), OK, "WSL 2"),
        (judging.judge_wsl("5.15.90.1-microsoft-standard-WSL2", Path("/mnt/c/x")), WARNING, "slow"),
        (judging.judge_wsl("4.4.0-19041-Microsoft", HERE), FAILURE, "--set-version"),
        (judging.judge_line_endings("", False, []), OK, "Unix"),
        (judging.judge_line_endings("true", True, []), OK, "Unix"),
        (judging.judge_line_endings("true", False, []), WARNING, "core.autocrlf"),
        (judging.judge_line_endings("", True, ["Makefile"]), FAILURE, "Makefile"),
    ],
)
def test_a_check(finding: Finding, level: str, words: str) -> None:
    assert finding.level == level, finding
    assert words in f"{finding.text} {finding.repair}"
    if level in (WARNING, FAILURE) and "unknown" not in finding.text:
        assert finding.repair, "what is wrong can be repaired"
    if level == OK:
        assert not finding.repair


def test_each_check_can_fail() -> None:
    """Those above: each has a case that is neither ok nor a note."""
    [cases] = [mark.args[1] for mark in test_a_check.pytestmark]  # type: ignore[attr-defined]
    bad = {finding.check for finding, level, _ in cases if level in (WARNING, FAILURE)}

    assert bad == {finding.check for finding in examine("processes")}


def test_of_many_taken_ports_some_are_named() -> None:
    wanted = {f"p{number}": number for number in range(5)}

    finding = judging.judge_ports(wanted, dict.fromkeys(range(5), FOREIGN), HERE, {})

    assert finding.text.endswith("2 (p2) is taken by nginx (pid 9), and 2 more")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("git version 2.39.5 (Apple Git-154)", (2, 39, 5)),
        ("GNU Make 3.81\nCopyright (C) 2006", (3, 81)),
        ("v2.35.1-desktop.1", (2, 35, 1)),
        ("", None),
    ],
)
def test_a_version_is_read(text: str, version: tuple[int, ...] | None) -> None:
    assert machine.parse_version(text) == version


def test_colours_are_for_terminals() -> None:
    finding = Finding(FAILURE, "git", "git is not installed", "sudo apt-get install git")

    assert format_finding(finding, coloured=False) == (
        "failure  git          git is not installed\n"
        "                      repair: sudo apt-get install git\n"
    )
    assert format_finding(finding, coloured=True).startswith("\x1b[31mfailure \x1b[0m git")


def test_it_knows_what_the_stack_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOMETOWN_RUN_DIR", raising=False)

    assert machine.read_usual_ports() == {port.name: port.default for port in HOMETOWN.ports}
    assert machine.MARK == supervision.MARK
    assert machine.read_run_folder("processes") == usual_run_dir("processes")
    assert machine.read_run_folder("cluster") == usual_run_dir("cluster")


def test_the_memory_is_that_of_the_documents() -> None:
    [processes] = re.findall(
        r"everything together uses ([\d.]+) GB of memory", (CHECKOUT / "README.md").read_text()
    )
    [containers] = re.findall(
        r"At rest they take ([\d.]+) GB of memory", (CHECKOUT / "docs/containers.md").read_text()
    )
    [cluster] = re.findall(r"([\d.]+) GB of memory", (CHECKOUT / "docs/cluster.md").read_text())

    figures = {"processes": processes, "containers": containers, "cluster": cluster}
    assert {way: float(gb) for way, gb in figures.items()} == judging.MEMORY_GB_NEEDED


def test_an_old_python_can_read_it() -> None:
    ast.parse(START.read_text(), feature_version=(3, 6))


@pytest.mark.parametrize(
    ("pretence", "words"),
    [
        ("sys.version_info = (3, 9, 2)", "this is Python 3.9.2, which is too old"),
        ("sys.platform = 'win32'", "wsl --install"),
    ],
)
def test_where_it_cannot_run_it_is_one_line(pretence: str, words: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PRETEND.format(pretence=pretence, path=str(START))],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
    )

    assert ended.returncode == 1
    assert words in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_process_of_a_stack_is_recognized() -> None:
    listens = (
        "import socket, sys; server = socket.create_server(('127.0.0.1', 0));"
        "print(server.getsockname()[1], flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", listens],
        env={**os.environ, machine.MARK: str(HERE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout
        port = int(process.stdout.readline())
        holder = machine.find_holder(port)
        assert not machine.is_free(port)
        process.communicate()

    assert holder is not None
    assert (holder.pid, holder.stack) == (process.pid, str(HERE))
    assert machine.is_free(port)
    assert machine.find_holder(port) is None


def test_it_runs_without_any_package(tmp_path: Path) -> None:
    ended = run_doctor(tmp_path, "-S")

    levels = [line.split()[0] for line in ended.stdout.splitlines() if not line.startswith(" ")]
    assert ended.stderr == ""
    assert len(levels) == len([*examine("processes")])
    assert set(levels) <= {OK, NOTE, WARNING, FAILURE}
    assert ended.returncode == (1 if FAILURE in levels else 0)
    assert "\x1b" not in ended.stdout


def test_a_requested_port_that_is_taken_ends_it_with_1(tmp_path: Path, taken_port: int) -> None:
    ended = run_doctor(tmp_path, HOMETOWN_PORT_USERS_API=str(taken_port))

    assert ended.returncode == 1
    assert f"{taken_port} (users-api) is taken by" in ended.stdout
    assert f"(pid {os.getpid()})" in ended.stdout
    assert "repair: stop that, or change HOMETOWN_PORT_USERS_API" in ended.stdout


def run_doctor(
    run_folder: Path, *options: str, **settings: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, "-m", "scripts.doctor"],
        cwd=CHECKOUT,
        env={**os.environ, "HOMETOWN_RUN_DIR": str(run_folder), **settings},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
    )


def test_make_runs_it_with_the_python_of_the_system() -> None:
    """Nothing is installed for it: its rule calls no other one."""
    verb = "doctor"
    planned = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", verb, "PYTHON=python3.12"],
        cwd=CHECKOUT,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
    )

    assert planned.stdout == "python3.12 -m scripts.doctor\n"
