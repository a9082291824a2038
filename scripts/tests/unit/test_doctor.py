"""`make doctor`: what each check makes of a value, machines that lack something, and real runs."""

import ast
import os
import re
import resource
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers.compose import PUBLISHED, REPLICAS
from local_stack.hometown import HOMETOWN
from local_stack.settings import CHECKOUT, usual_run_dir
from scripts.doctor import judging, machine
from scripts.doctor.__main__ import format_finding
from scripts.doctor.examination import examine, list_checks
from scripts.doctor.judging import FAILURE, GB, NOTE, OK, WARNING, Finding
from test_support.waits import HANGS_AFTER_SECONDS

START = CHECKOUT / "scripts/doctor/__main__.py"

HERE = Path("/home/me/hometown")
API = {"users-api": 8001}
FIVE = {f"p{number}": number for number in range(5)}


def memory(
    total: float, available: float | None, way: str = "processes", *, runs: bool = False
) -> Finding:
    free = None if available is None else int(available * GB)
    return judging.judge_memory(int(total * GB), free, way, runs=runs)


def disk(free: float, *, is_installed: bool) -> Finding:
    return judging.judge_disk(HERE, int(free * GB), is_installed=is_installed)


CASES = [
    (judging.judge_system("Linux", "x86_64", has_musl=False), OK, "Linux on x86_64"),
    (judging.judge_system("Linux", "aarch64", has_musl=False), WARNING, "no wheels"),
    (judging.judge_system("Darwin", "arm64", has_musl=False), NOTE, "platforms.md"),
    (judging.judge_system("Darwin", "x86_64", has_musl=False), WARNING, "no wheels"),
    (judging.judge_system("Linux", "riscv64", has_musl=False), WARNING, "no wheels"),
    (judging.judge_system("Linux", "x86_64", has_musl=True), FAILURE, "musl"),
    (judging.judge_wsl("6.1.0-18-amd64", HERE), OK, "not WSL"),
    (judging.judge_wsl("5.15.90.1-microsoft-standard-WSL2", HERE), OK, "WSL 2"),
    (judging.judge_wsl("5.15.90.1-microsoft-standard-WSL2", Path("/mnt/c/x")), WARNING, "slow"),
    (judging.judge_wsl("4.4.0-19041-Microsoft", HERE), FAILURE, "--set-version"),
    (judging.judge_python((3, 11, 2), has_venv=True, has_uv=False), OK, "3.11.2"),
    (judging.judge_python((3, 13, 1), has_venv=False, has_uv=False), FAILURE, "python3.13-venv"),
    (judging.judge_python((3, 13, 1), has_venv=False, has_uv=True), OK, "3.13.1"),
    (judging.judge_make((4, 3)), OK, "4.3"),
    (judging.judge_make((3, 80)), FAILURE, "too old: 3.81 or newer"),
    (judging.judge_git((2, 39, 5)), OK, "2.39.5"),
    (judging.judge_git(None), WARNING, "apt-get install git"),
    (judging.judge_docker((28, 1), (2, 35), "containers"), OK, "28.1"),
    (judging.judge_docker(None, None, "processes"), NOTE, "only containers need it"),
    (judging.judge_docker(None, None, "containers"), FAILURE, "start Docker"),
    (judging.judge_docker((25, 0), (2, 35), "processes"), NOTE, "too old"),
    (judging.judge_docker((25, 0), (2, 35), "cluster"), FAILURE, "too old"),
    (judging.judge_docker((26, 0), None, "containers"), FAILURE, "Compose is missing"),
    (judging.judge_docker((26, 0), (2, 25, 9), "containers"), FAILURE, "too old"),
    (judging.judge_cores(2), OK, "2"),
    (judging.judge_cores(1), WARNING, "2 cores"),
    (memory(16, 8), OK, "8.0 of 16.0 GB"),
    (memory(16, None), OK, "16.0 GB"),
    (memory(2.9, 2.8), WARNING, ".wslconfig"),
    (memory(16, 1.5), WARNING, "sort -rn"),
    (memory(16, 1.5, runs=True), OK, "1.5 of 16.0 GB"),
    (memory(5.9, 5.5, way="cluster"), WARNING, "5.0 GB"),
    (judging.judge_memory(None, None, "processes", runs=False), NOTE, "unknown"),
    (disk(4, is_installed=False), OK, "4 GB are needed"),
    (disk(3, is_installed=False), WARNING, "3.0 GB are free for /home/me/hometown"),
    (disk(2.1, is_installed=False), FAILURE, "2.1 GB are free for /home/me/hometown"),
    (disk(1.9, is_installed=False), FAILURE, "du -xh /home/me/hometown | sort -h | tail"),
    (disk(3, is_installed=True), OK, "1 GB are needed"),
    (disk(0.9, is_installed=True), WARNING, "make room"),
    (disk(0.1, is_installed=True), FAILURE, "make room"),
    (judging.judge_open_files(1024), OK, "1,024"),
    (judging.judge_open_files(resource.RLIM_INFINITY), OK, "no limit"),
    (judging.judge_open_files(256), FAILURE, "limits.conf"),
    (judging.judge_watches(None), OK, "no limit"),
    (judging.judge_watches(8192), OK, "8,192"),
    (judging.judge_watches(1000), WARNING, "sysctl"),
    (judging.judge_path(HERE), OK, "/home/me/hometown"),
    (judging.judge_path(Path("/home/me/my shop")), NOTE, "mv '/home/me/my shop' ~/my-shop"),
    (judging.judge_path(Path("/home/m:e/shop")), FAILURE, "mv /home/m:e/shop ~/shop"),
    (judging.judge_access(0o022, [], is_new_for_root=False), OK, "0022"),
    (judging.judge_access(0o077, [], is_new_for_root=False), OK, "0077"),
    (judging.judge_access(0o077, [], is_new_for_root=True), FAILURE, "umask 022"),
    (judging.judge_access(0o377, [], is_new_for_root=False), FAILURE, "to yourself"),
    (
        judging.judge_access(0o022, [HERE / "a b"], is_new_for_root=True),
        FAILURE,
        "chmod o+x '/home/me/",
    ),
    (judging.judge_locale("UTF-8"), OK, "UTF-8"),
    (judging.judge_locale("utf8"), OK, "utf8"),
    (judging.judge_locale("ISO-8859-1"), WARNING, "LC_ALL=C.UTF-8"),
    (judging.judge_proxies({}), OK, "none"),
    (judging.judge_proxies({"http_proxy": ""}), OK, "none"),
    (judging.judge_proxies({"HTTPS_PROXY": "http://a"}), OK, "downloads use HTTPS_PROXY"),
    (judging.judge_proxies({"http_proxy": "http://a"}), WARNING, "export no_proxy="),
    (judging.judge_proxies({"ALL_PROXY": "a", "NO_PROXY": "x"}), WARNING, "ALL_PROXY also"),
    (judging.judge_proxies({"http_proxy": "a", "no_proxy": "x, 127.0.0.0/8"}), OK, "http_proxy"),
    (judging.judge_proxies({"http_proxy": "a", "NO_PROXY": "*"}), OK, "http_proxy"),
    (judging.judge_proxies({"http_proxy": "a", "NO_PROXY": "*.corp"}), WARNING, "http_proxy"),
    (judging.judge_proxies({"PAGE_BEHIND_PROXY": "true"}), OK, "none"),
    (judging.judge_ports(API, set(), set(), {}, []), OK, "all 1 are free"),
    (judging.judge_ports({}, set(), set(), {}, []), OK, "free ones are chosen"),
    (judging.judge_ports(API, set(), {8001}, {}, []), OK, "the stack that runs here"),
    (judging.judge_ports(API, set(), {8001}, API, []), OK, "the stack that runs here"),
    (judging.judge_ports(API, {8001}, set(), {}, []), WARNING, ":8001   shows by what"),
    (
        judging.judge_ports(API, set(), set(), {"users-api": None}, []),
        FAILURE,
        "_API names no port",
    ),
    (judging.judge_ports(API, set(), set(), {}, ["HOMETOWN_PORT_X"]), FAILURE, "HOMETOWN_PORT_X"),
    (
        judging.judge_ports(FIVE, {*range(5)}, set(), {}, []),
        WARNING,
        "0 (p0), 1 (p1), 2 (p2) and 2",
    ),
    (judging.judge_ports(API, {8001}, set(), API, []), FAILURE, "HOMETOWN_PORT_USERS_API"),
]


@pytest.mark.parametrize(("finding", "level", "words"), CASES)
def test_a_check(finding: Finding, level: str, words: str) -> None:
    assert finding.level == level, finding
    assert words in f"{finding.text} {finding.repair}"
    assert "\n" not in f"{finding.text} {finding.repair}"
    if level in (WARNING, FAILURE):
        assert finding.repair, "what is wrong can be repaired"
    if level == OK:
        assert not finding.repair


def test_each_check_can_fail() -> None:
    """Those above: each has a case that is neither ok nor a note."""
    bad = {finding.check for finding, level, _ in CASES if level in (WARNING, FAILURE)}

    assert bad == {finding.check for finding in examine("processes")}


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
    finding = Finding(FAILURE, "git", "it is not installed", "sudo apt-get install git")

    assert format_finding(finding, is_coloured=False) == (
        "failure  git          it is not installed\n"
        "                      repair: sudo apt-get install git\n"
    )
    assert format_finding(finding, is_coloured=True).startswith("\x1b[31mfailure \x1b[0m git")


def test_it_knows_what_the_stack_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOMETOWN_RUN_DIR", raising=False)

    published = {port.name: port.default for port in PUBLISHED}
    assert machine.read_usual_ports("processes") == {
        port.name: port.default for port in HOMETOWN.ports
    }
    assert machine.read_usual_ports("cluster") == published
    assert published.items() - machine.read_usual_ports("containers").items() == {
        (port.name, port.default) for port in REPLICAS
    }
    assert machine.get_run_folder("processes") == usual_run_dir("processes")
    assert machine.get_run_folder("cluster") == usual_run_dir("cluster")


def test_what_a_stack_needs_is_what_the_documents_say() -> None:
    [processes] = re.findall(
        r"everything together uses ([\d.]+) GB of memory", (CHECKOUT / "README.md").read_text()
    )
    page = (CHECKOUT / "docs/containers.md").read_text()
    [containers] = re.findall(r"At rest the containers\s+take ([\d.]+) GB of memory", page)
    [cluster] = re.findall(r"([\d.]+) GB of memory", (CHECKOUT / "docs/cluster.md").read_text())
    demanded = r"Docker (\d+) and Compose (\d+)\.(\d+), or newer"
    [docker] = re.findall(demanded, page)
    [docker_first] = re.findall(demanded, (CHECKOUT / "README.md").read_text())

    figures = {"processes": processes, "containers": containers, "cluster": cluster}
    assert {way: float(gb) for way, gb in figures.items()} == judging.MEMORY_GB_NEEDED
    assert docker == docker_first
    assert tuple(map(int, docker)) == (judging.DOCKER_MIN[0], *judging.COMPOSE_MIN)


def test_an_old_python_can_read_it() -> None:
    ast.parse(START.read_text(), feature_version=(3, 6))


PRETEND = """
import os, runpy, shutil, sys
sys.argv[1:] = []
{pretence}
runpy.run_module("scripts.doctor", run_name="__main__")
"""
PROXY = {"http_proxy": "http://127.0.0.1:9", "no_proxy": "", "NO_PROXY": ""}
PRINTED = re.compile(r"^(\S+) +(\S[^\n]*?)  +(.*)\n(?: +repair: (.*)\n)?", re.MULTILINE)


@pytest.mark.parametrize(
    ("pretence", "words"),
    [
        ("sys.version_info = (3, 9, 2)", "this is Python 3.9.2, which is too old"),
        ("sys.platform = 'win32'", "wsl --install"),
    ],
)
def test_a_system_on_which_it_cannot_run_is_one_line(pretence: str, words: str) -> None:
    ended = run_doctor(pretence)

    assert ended.returncode == 1
    assert words in ended.stderr
    assert ended.stderr.count("\n") == 1


def run_doctor(
    pretence: str = "",
    *,
    settings: dict[str, str] | None = None,
    checkout: Path = CHECKOUT,
) -> subprocess.CompletedProcess[str]:
    """Run it without any package, on a machine that differs from this one by a statement."""
    return subprocess.run(
        [sys.executable, "-S", "-c", PRETEND.format(pretence=pretence)],
        cwd=checkout,
        env={name: os.environ[name] for name in os.environ if not name.startswith("HOMETOWN_")}
        | (settings or {}),
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )


def find(ended: subprocess.CompletedProcess[str], check: str) -> Finding:
    """Return what was printed of one check, of a run that found something."""
    assert ended.stderr == ""
    found = [Finding(level, *rest) for level, *rest in PRINTED.findall(ended.stdout)]
    assert ended.returncode == (FAILURE in {each.level for each in found})
    return next(each for each in found if each.check == check)


def test_it_runs_without_any_package() -> None:
    ended = run_doctor()

    assert ended.stderr == ""
    assert [check for _, check, _, _ in PRINTED.findall(ended.stdout)] == [
        each.check for each in examine("processes")
    ]
    assert [*list_checks("processes")] == [each.check for each in examine("processes")]
    assert "not examined" not in ended.stdout
    assert "\x1b" not in ended.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A checkout in which nothing is installed, in a folder with a blank."""
    checkout = tmp_path / "my shop"
    shutil.copytree(CHECKOUT / "scripts/doctor", checkout / "scripts/doctor")
    for name in ("scripts/__init__.py", "scripts/setup.py", "users-svc/service.toml"):
        (checkout / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(CHECKOUT / name, checkout / name)
    return checkout


def test_a_machine_whose_python_has_no_venv(copy: Path) -> None:
    found = find(run_doctor("sys.modules['ensurepip'] = None", checkout=copy), "python")

    assert found.level == FAILURE
    assert re.fullmatch(r"sudo apt-get install python3\.\d+-venv", found.repair)


@pytest.mark.parametrize("full", ["my shop", "caches"])
def test_a_machine_with_little_disk(copy: Path, tmp_path: Path, full: str) -> None:
    """As that of the checkout, or of the caches, which can be another one."""
    (tmp_path / "caches").mkdir()
    pretence = f"""
Usage = type(shutil.disk_usage("."))
def usage(path):
    free = 1 if path.name == {full!r} else 9
    return Usage(total=9 * 10**9, used=0, free=free * 10**9)
shutil.disk_usage = usage
"""
    caches = {"XDG_CACHE_HOME": str(tmp_path / "caches/of mine")}

    found = find(run_doctor(pretence, checkout=copy, settings=caches), "disk")

    where = copy if full == "my shop" else tmp_path / "caches/of mine/uv"
    assert (found.level, found.text) == (
        FAILURE,
        f"1.0 GB are free for {where}, 4 GB are needed",
    )
    assert found.repair.startswith(f"make room there: du -xh {shlex.quote(str(where))} | sort -h")


@pytest.mark.parametrize(
    ("pretence", "check", "text"),
    [
        ("os.umask(0o377)", "umask", "0377 closes new files to yourself"),
        ("os.sched_getaffinity = lambda process: {0}", "cores", "1: everything starts, slowly"),
        ("locale.getpreferredencoding = lambda _: 'EUC-JP'", "locale", "files are read as EUC-JP"),
        ("resource.getrlimit = lambda _: (64, 64)", "open files", "a process can have 64;"),
        ("platform.release = lambda: '4.4.0-Microsoft'", "wsl", "WSL 1 has no Linux kernel"),
        ("platform.machine = lambda: 'riscv64'", "system", "Linux on riscv64: some packages"),
    ],
)
def test_a_machine_that_differs_in_one_thing(pretence: str, check: str, text: str) -> None:
    found = find(run_doctor(f"import locale, os, platform, resource; {pretence}"), check)

    assert found.level in (WARNING, FAILURE)
    assert found.text.startswith(text)


def test_folders_that_another_user_cannot_enter_are_found(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)

    assert tmp_path in machine.list_closed_folders(tmp_path)

    tmp_path.chmod(0o701)

    assert tmp_path not in machine.list_closed_folders(tmp_path)


@pytest.mark.parametrize(("is_new", "level"), [(True, FAILURE), (False, OK)])
def test_root_creates_no_folder_that_postgresql_cannot_enter(
    copy: Path, tmp_path: Path, is_new: bool, level: str
) -> None:
    """Where all is there already, it does not matter."""
    pretence = """
import scripts.doctor.machine
scripts.doctor.machine.list_closed_folders = lambda _: []
os.geteuid = lambda: 0
os.umask(0o077)
"""
    if not is_new:
        (copy / ".venv/bin").mkdir(parents=True)
        (copy / ".venv/bin/python").touch()
    settings = {"HOMETOWN_RUN_DIR": str(tmp_path / "none" if is_new else tmp_path)}

    assert find(run_doctor(pretence, checkout=copy, settings=settings), "umask").level == level


def test_the_umask_is_read_and_stays() -> None:
    before = os.umask(0o027)
    try:
        assert [machine.read_umask(), machine.read_umask()] == [0o027, 0o027]
    finally:
        os.umask(before)


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_machine_on_which_a_requested_port_is_taken(taken_port: int) -> None:
    found = find(run_doctor(settings={"HOMETOWN_PORT_USERS_API": str(taken_port)}), "ports")

    assert (found.level, found.text) == (FAILURE, f"taken: {taken_port} (users-api)")
    assert f":{taken_port} " in found.repair
    assert found.repair.endswith(": end it, or change HOMETOWN_PORT_USERS_API")


@pytest.mark.parametrize("value", ["abc", "99999", "0", ""])
def test_a_setting_that_is_no_port_is_named(value: str) -> None:
    found = find(run_doctor(settings={"HOMETOWN_PORT_USERS_API": value}), "ports")

    assert (found.level, found.repair) == (FAILURE, "correct or unset HOMETOWN_PORT_USERS_API")


def test_a_setting_with_a_blank_behind_it_is_a_port(taken_port: int) -> None:
    found = find(run_doctor(settings={"HOMETOWN_PORT_USERS_API": f"{taken_port}  "}), "ports")

    assert found.text == f"taken: {taken_port} (users-api)"


def test_a_setting_of_no_process_is_named() -> None:
    found = find(run_doctor(settings={"HOMETOWN_PORT_MOON": "9000"}), "ports")

    assert (found.level, found.repair) == (FAILURE, "correct or unset HOMETOWN_PORT_MOON")


def test_a_check_that_fails_itself_hinders_no_other(copy: Path) -> None:
    (copy / "users-svc/service.toml").write_text("[half")

    ended = run_doctor(checkout=copy)

    assert find(ended, "ports").text.startswith("not examined (TOMLDecodeError: ")
    assert find(ended, "path").level == NOTE


def test_it_runs_for_a_user_without_a_home() -> None:
    found = find(run_doctor("del os.environ['HOME']; os.path.expanduser = str"), "disk")

    assert "GB are free for" in found.text


@pytest.mark.parametrize(("way", "level"), [("containers", FAILURE), ("processes", NOTE)])
def test_a_machine_with_an_old_docker(tmp_path: Path, way: str, level: str) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho 20.10.24\n")
    docker.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"

    found = find(run_doctor(settings={"PATH": path, "HOMETOWN_IN": way}), "docker")

    assert found.level == level
    assert found.text.startswith("engine 20.10.24 is too old")
    assert found.repair.startswith("install Docker 26 or newer")


def test_a_machine_that_sends_requests_to_itself_to_a_proxy() -> None:
    proxy = PROXY | {"http_proxy": "http://me:" + "secret@127.0.0.1:9"}

    ended = run_doctor(settings=proxy)

    found = find(ended, "proxies")
    assert (found.level, found.repair.split()[0]) == (WARNING, "export")
    assert "secret" not in ended.stdout
    assert find(run_doctor(settings=proxy | {"no_proxy": "127.0.0.1"}), "proxies").level == OK


def test_a_checkout_in_a_path_with_a_blank(copy: Path) -> None:
    found = find(run_doctor(checkout=copy), "path")

    assert found.level == NOTE
    assert found.repair == f"mv '{copy}' ~/my-shop   (then `make setup` there)"


def test_a_stack_that_runs_is_no_reason_to_complain(tmp_path: Path, taken_port: int) -> None:
    """But what else listens on one of its ports is, once it has ended, or was killed."""
    (tmp_path / "addresses.json").write_text(f'{{"users-api": "http://127.0.0.1:{taken_port}"}}')
    (tmp_path / "supervisord.pid").write_text(f"{os.getpid()}\n")
    settings = {"HOMETOWN_RUN_DIR": str(tmp_path), "HOMETOWN_PORTS": "free"}

    own = find(run_doctor(settings=settings), "ports")
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        (tmp_path / "supervisord.pid").write_text(str(ended.pid))
    foreign = find(run_doctor(settings=settings), "ports")
    (tmp_path / "supervisord.pid").unlink()
    assert find(run_doctor(settings=settings), "ports") == foreign
    (tmp_path / "addresses.json").unlink()
    none = find(run_doctor(settings=settings), "ports")

    assert (none.level, none.text) == (OK, "free ones are chosen")
    assert (own.level, own.text) == (OK, "1 are those of the stack that runs here")
    assert foreign.level == WARNING
    assert foreign.text.startswith(f"taken: {taken_port} (users-api);")


def test_an_unknown_way_to_run_is_one_line() -> None:
    ended = run_doctor(settings={"HOMETOWN_IN": "space"})

    assert ended.returncode == 1
    assert ended.stderr == (
        "hometown: in=space is unknown: choose one of processes, containers, cluster\n"
    )


def test_only_problems_are_printed_on_request() -> None:
    ended = run_doctor("sys.argv[1:] = ['--problems']", settings=PROXY)

    printed = [(level, check) for level, check, _, _ in PRINTED.findall(ended.stdout)]
    assert (WARNING, "proxies") in printed
    assert {level for level, _ in printed} <= {WARNING, FAILURE}


def test_make_runs_it_with_the_python_of_the_system() -> None:
    """Nothing is installed for it: its rule calls no other one."""
    planned = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "doctor", "PYTHON=python3.12"],
        cwd=CHECKOUT,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )

    assert planned.stdout.strip() == "python3.12 -m scripts.doctor"


def test_the_first_setup_prints_what_is_to_be_repaired(copy: Path) -> None:
    """It goes on then, as what it needs may be enough."""
    for name in ("uv.lock", "pyproject.toml"):
        shutil.copyfile(CHECKOUT / name, copy / name)
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    nothing_else = {"PIP_CONFIG_FILE": os.devnull, "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}
    here = {"HOMETOWN_RUN_DIR": str(copy / ".run")}

    ended = subprocess.run(
        [sys.executable, "scripts/setup.py"],
        cwd=copy,
        env=os.environ | nowhere | nothing_else | here | PROXY | {"PIP_NO_CACHE_DIR": "1"},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )

    assert "warning  proxies" in ended.stdout
    assert "ok " not in ended.stdout
    assert ended.stderr.startswith("hometown: cannot install uv")
