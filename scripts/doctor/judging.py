"""What the values of a machine mean: a function for each check, with the bounds that it has."""

import re
import resource
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.setup import UNUSABLE

OK, NOTE, WARNING, FAILURE = "ok", "note", "warning", "failure"

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
DISK_GB_MIN = 2.2
"""For packages: in blocks of the disk, more than the sum of their files."""
DISK_GB_NEEDED = 4.0
"""For packages, uv's cache of them if it cannot be linked, downloads and data."""
DISK_GB_INSTALLED_MIN = 0.2
"""Once the packages are installed: for what is created at a start."""
DISK_GB_INSTALLED = 1.0
"""For downloads and data."""
GIT_MIN = (2, 0)
MAKE_MIN = (3, 81)
"""The one of macOS."""
DOCKER_MIN = (26, 0)
"""From here on, a container can have one folder of a volume."""
COMPOSE_MIN = (2, 26)
OPEN_FILES_MIN = 1024
"""The supervisor ends at once where it cannot have as many."""
WATCHES_MIN = 8192
"""An editor watches thousands of folders, `make dev` some hundreds."""
PORTS_NAMED_MAX = 3

PROXY = re.compile("(https?|all|no)_proxy", re.IGNORECASE)
OWN_RIGHTS = 0o700
ENTRY_FOR_OTHERS = 0o001


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; `repair` is a command, or exactly what to do."""

    level: str
    check: str
    text: str
    repair: str = ""


# The machine and its programs


def judge_system(system: str, machine: str, *, has_musl: bool) -> Finding:
    """Judge whether the packages have wheels for this machine."""
    what = f"{system} on {machine}"
    if system == "Linux" and has_musl:
        return Finding(
            FAILURE,
            "system",
            f"{what} with musl: Java and PostgreSQL have wheels for glibc only",
            "use a system with glibc, such as Debian, or containers: `docker compose up`",
        )
    if (system, machine) == ("Linux", "x86_64"):
        return Finding(OK, "system", what)
    if (system, machine) == ("Darwin", "arm64"):
        return Finding(NOTE, "system", f"{what}, which was not tried: docs/platforms.md")
    return Finding(
        WARNING,
        "system",
        f"{what}: some packages have no wheels and are compiled: docs/platforms.md",
        "install a compiler, or use containers if `make setup` fails: `docker compose up`",
    )


def judge_wsl(release: str, checkout: Path) -> Finding:
    """Judge where files are in the Linux of Windows."""
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


def judge_python(version: Sequence[int], *, has_venv: bool, has_uv: bool) -> Finding:
    """Judge an interpreter; where uv is installed in the checkout, the module venv is not used."""
    name = format_version(version)
    if not has_venv and not has_uv:
        return Finding(
            FAILURE,
            "python",
            f"{name} has no module venv or ensurepip",
            f"sudo apt-get install python{format_version(version[:2])}-venv",
        )
    return Finding(OK, "python", f"{name}, {sys.executable}")


def judge_make(version: Sequence[int] | None) -> Finding:
    return judge_program(FAILURE, "make", version, MAKE_MIN)


def judge_git(version: Sequence[int] | None) -> Finding:
    """Judge git, which the stack does not need, but verbs that change the checkout."""
    return judge_program(WARNING, "git", version, GIT_MIN)


def judge_program(
    level: str, program: str, version: Sequence[int] | None, oldest: Sequence[int]
) -> Finding:
    """Judge a version; `level` is how bad it is to have none, or an older one than `oldest`."""
    repair = f"sudo apt-get install {program}   (Fedora: dnf; macOS: xcode-select --install)"
    if version is None:
        return Finding(level, program, "it is not installed", repair)
    name = format_version(version)
    if tuple(version) < tuple(oldest):
        needed = f"{format_version(oldest)} or newer is needed"
        return Finding(level, program, f"{name} is too old: {needed}", repair)
    return Finding(OK, program, name)


def judge_docker(engine: Sequence[int] | None, compose: Sequence[int] | None, way: str) -> Finding:
    """Judge an engine, which only containers need; for processes this is a note."""
    is_needed = way != "processes"
    level = FAILURE if is_needed else NOTE
    only = "" if is_needed else "; only containers need it"
    if engine is None:
        repair = (
            "start Docker, or install it: docs.docker.com/engine/install; if it runs:"
            ' sudo usermod -aG docker "$USER", then log in again'
        )
        return Finding(level, "docker", f"no engine responds{only}", repair if is_needed else "")
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
            "update Docker, or install the plugin: docs.docker.com/compose/install",
        )
    return Finding(
        OK, "docker", f"engine {format_version(engine)}, Compose {format_version(compose)}"
    )


# What it has room for


def judge_cores(cores: int) -> Finding:
    if cores < CORES_MIN:
        return Finding(
            WARNING,
            "cores",
            f"{cores}: everything starts, slowly, and tests can run into their limits",
            f"give the machine {CORES_MIN} cores   (WSL: processors=2 in .wslconfig)",
        )
    return Finding(OK, "cores", str(cores))


def judge_memory(total: int | None, available: int | None, way: str, *, runs: bool) -> Finding:
    """Judge bytes of memory, which are unknown on some systems; `runs` is whether the stack does.

    A machine with less can start the stack, slowly, if it has room to swap.
    """
    needed = MEMORY_GB_NEEDED[way]
    need = f"the stack needs {needed:.1f} GB"
    if total is None:
        return Finding(NOTE, "memory", f"unknown on this system; {need}")
    if total < (needed + SYSTEM_GB) * GB:
        return Finding(
            WARNING,
            "memory",
            f"{total / GB:.1f} GB in all; {need}, and the system {SYSTEM_GB:.0f} GB",
            "give the machine more memory   (WSL: memory=6GB below [wsl2] in .wslconfig;"
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
    return Finding(OK, "memory", f"{free}{total / GB:.1f} GB are available; {need}")


def judge_disk(folder: Path, free: int, *, is_installed: bool) -> Finding:
    """Judge the bytes that are free around a folder; installed packages need none any more."""
    needed = DISK_GB_INSTALLED if is_installed else DISK_GB_NEEDED
    least = DISK_GB_INSTALLED_MIN if is_installed else DISK_GB_MIN
    text = f"{free / GB:.1f} GB are free for {folder}, {needed:.0f} GB are needed"
    if free < needed * GB:
        level = FAILURE if free < least * GB else WARNING
        largest = f"du -xh {shlex.quote(str(folder))} | sort -h | tail"
        return Finding(level, "disk", text, f"make room there: {largest}   (shows what is large)")
    return Finding(OK, "disk", text)


def judge_open_files(limit: int) -> Finding:
    """Judge the hard limit: the supervisor and Java raise the soft one themselves."""
    if limit != resource.RLIM_INFINITY and limit < OPEN_FILES_MIN:
        return Finding(
            FAILURE,
            "open files",
            f"a process can have {limit}; {OPEN_FILES_MIN} are needed",
            f"a line `$USER hard nofile {OPEN_FILES_MIN * 4}` in /etc/security/limits.conf, then"
            f" log in again   (in a container: docker run --ulimit nofile={OPEN_FILES_MIN * 4})",
        )
    text = "no limit" if limit == resource.RLIM_INFINITY else f"at most {limit:,} in a process"
    return Finding(OK, "open files", text)


def judge_watches(watches: int | None) -> Finding:
    """Judge how many folders can be watched; only Linux has a limit."""
    if watches is not None and watches < WATCHES_MIN:
        return Finding(
            WARNING,
            "watches",
            f"inotify watches {watches:,} folders at most: `make dev` can miss a saved file",
            "sudo sysctl fs.inotify.max_user_watches=524288",
        )
    text = "no limit of inotify" if watches is None else f"inotify watches {watches:,} at most"
    return Finding(OK, "watches", text)


# Where the files are, and what a shell passes on


def judge_path(checkout: Path) -> Finding:
    """Judge a path, of which some programs take characters for something else."""
    if found := UNUSABLE.search(str(checkout)):
        return Finding(
            FAILURE,
            "path",
            f"{checkout} has {found[0]!r} in it, which PostgreSQL, Java or the supervisor"
            " would misread",
            name_move(checkout),
        )
    if re.search(r"\s", str(checkout)):
        return Finding(
            NOTE,
            "path",
            f"{checkout} has a blank: the verbs work, your own commands have to quote it",
            name_move(checkout),
        )
    return Finding(OK, "path", str(checkout))


def name_move(checkout: Path) -> str:
    """Return the command that moves a checkout to the folder of its user."""
    name = re.sub(r"[^\w.-]+", "-", checkout.name) or "checkout"
    return f"mv {shlex.quote(str(checkout))} ~/{name}   (then `make setup` there)"


def judge_access(umask: int, closed: Sequence[Path], *, is_new_for_root: bool) -> Finding:
    """Judge what can be read of the files that are created.

    PostgreSQL does not run as root: `closed` are folders that its user cannot enter then, and
    `is_new_for_root` whether root is to create more of them.
    """
    if umask & OWN_RIGHTS:
        return Finding(FAILURE, "umask", f"{umask:04o} closes new files to yourself", "umask 022")
    if closed:
        folders = " ".join(shlex.quote(str(folder)) for folder in closed)
        return Finding(
            FAILURE,
            "umask",
            f"PostgreSQL does not run as root, and its user cannot enter {folders}",
            f"chmod o+x {folders}, or run as an ordinary user",
        )
    if is_new_for_root and umask & ENTRY_FOR_OTHERS:
        return Finding(
            FAILURE,
            "umask",
            f"with {umask:04o}, the user of PostgreSQL, which does not run as root,"
            " cannot enter new folders",
            "umask 022, or run as an ordinary user",
        )
    return Finding(OK, "umask", f"{umask:04o}")


def judge_locale(encoding: str) -> Finding:
    """Judge the encoding in which programs read text."""
    if encoding.lower().replace("-", "") != "utf8":
        return Finding(
            WARNING,
            "locale",
            f"files are read as {encoding}, and those of this project are UTF-8",
            "export LC_ALL=C.UTF-8",
        )
    return Finding(OK, "locale", encoding)


def judge_proxies(variables: Mapping[str, str]) -> Finding:
    """Judge whether a client would ask a proxy for an address of this machine."""
    given = {
        name.lower(): name for name, value in variables.items() if PROXY.fullmatch(name) and value
    }
    asked = [given[name] for name in ("http_proxy", "all_proxy") if name in given]
    direct = ",".join(variables[name] for name in ("no_proxy", "NO_PROXY") if name in variables)
    if asked and not re.search(r"(^|,)\s*(\*\s*(,|$)|127\.)", direct):
        return Finding(
            WARNING,
            "proxies",
            f"{' and '.join(asked)} also apply to 127.0.0.1: curl and your own clients send"
            " requests and tokens to the proxy",
            'export no_proxy="127.0.0.1,localhost,$no_proxy"; export NO_PROXY="$no_proxy"',
        )
    if names := [given[name] for name in given if name != "no_proxy"]:
        return Finding(OK, "proxies", f"downloads use {', '.join(sorted(names))}")
    return Finding(OK, "proxies", "none is set")


def judge_ports(
    wanted: Mapping[str, int],
    taken: Collection[int],
    own: Collection[int],
    given: Mapping[str, int | None],
    unknown: Collection[str],
) -> Finding:
    """Judge ports by name; one that is taken is replaced at the start, if no setting names it.

    `own` are those on which the stack of this checkout listens; `given` those of settings, None
    if it is no port, and `unknown` settings for which there is no process.
    """
    wrong = [*(port_variable(name) for name in given if given[name] is None), *unknown]
    if wrong:
        return Finding(
            FAILURE,
            "ports",
            f"{wrong[0]} names no port of the stack",
            f"correct or unset {wrong[0]}",
        )
    foreign = {name: port for name, port in wanted.items() if port in taken}
    demanded = {name: port for name, port in foreign.items() if name in given}
    named = [f"{port} ({name})" for name, port in (demanded or foreign).items()]
    text = ", ".join(named[:PORTS_NAMED_MAX])
    if len(named) > PORTS_NAMED_MAX:
        text += f" and {len(named) - PORTS_NAMED_MAX} more"
    if demanded:
        name = next(iter(demanded))
        return Finding(
            FAILURE,
            "ports",
            f"taken: {text}",
            f"{show_holder(demanded[name])}: end it, or change {port_variable(name)}",
        )
    if foreign:
        port = next(iter(foreign.values()))
        return Finding(
            WARNING,
            "ports",
            f"taken: {text}; the start uses free ones instead, and `make status` shows them",
            f"{show_holder(port)}: end it to have the usual ones",
        )
    if own:
        return Finding(OK, "ports", f"{len(own)} are those of the stack that runs here")
    return Finding(OK, "ports", f"all {len(wanted)} are free" if wanted else "free ones are chosen")


def show_holder(port: int) -> str:
    """Return the command that shows what listens on a port, with what it shows."""
    command = f"ss -ltnp sport = :{port}" if sys.platform == "linux" else f"lsof -i :{port}"
    return f"{command}   shows by what (of others with sudo)"


def format_version(version: Sequence[int]) -> str:
    return ".".join(str(part) for part in version)


def port_variable(name: str) -> str:
    """Name the setting of a port, such as `HOMETOWN_PORT_USERS_API`."""
    return "HOMETOWN_PORT_" + name.upper().replace("-", "_")
