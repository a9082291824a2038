"""What this machine returns. A value that it does not have, or does not reveal, is None."""

import contextlib
import importlib.util
import json
import os
import platform
import re
import shutil
import socket
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from scripts.doctor.judging import port_variable
from scripts.setup import CHECKOUT, VENV

PROBE_SECONDS_MAX = 10

PUBLISHED = {"postgres": 15432, "kafka": 19092, "jaeger": 16686}
FOUNDATION_PORTS = {
    "processes": PUBLISHED | {"kafka-controller": 19093, "otlp": 4318},
    "containers": PUBLISHED,
    "cluster": PUBLISHED | {"kafka-2": 19093, "kafka-3": 19094},
}
"""Of what the services run on; those of the services are in their `service.toml`."""


def run(*command: str) -> str:
    """Return standard output; nothing if the program is missing, fails or takes too long."""
    try:
        ended = subprocess.run(
            command,
            cwd=CHECKOUT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS_MAX,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout.strip() if ended.returncode == 0 else ""


def read_version(*command: str) -> tuple[int, ...] | None:
    return parse_version(run(*command))


def parse_version(text: str) -> tuple[int, ...] | None:
    """Return the first version in a text: (2, 39, 5) of `git version 2.39.5 (Apple Git-154)`."""
    match = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in match[0].split(".")) if match else None


def has_musl() -> bool:
    return platform.libc_ver()[0] != "glibc" and any(Path("/lib").glob("ld-musl-*"))


def has_venv() -> bool:
    """Return whether Python has these two, which Debian has in a package of their own."""
    return all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))


# Cores, memory and disk


def count_cores() -> int:
    """Return those that this process can use, also in a container with a limit."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    with contextlib.suppress(ValueError):
        quota, period = read("/sys/fs/cgroup/cpu.max").split()
        return min(cores, max(1, round(int(quota) / int(period))))  # `max` is no number
    return cores


def read_memory() -> int | None:
    """Return the bytes of the machine, or of the container that this is."""
    sizes = [read_meminfo("MemTotal"), read_number("/sys/fs/cgroup/memory.max")]
    if platform.system() == "Darwin":
        sizes.append(to_number(run("sysctl", "-n", "hw.memsize")))
    return min((size for size in sizes if size is not None), default=None)


def read_available_memory() -> int | None:
    """Return bytes; of a container at most what its limit leaves, with caches of files."""
    limit = read_number("/sys/fs/cgroup/memory.max")
    used = read_number("/sys/fs/cgroup/memory.current")
    left = None
    if limit is not None and used is not None:
        cached = re.search(
            r"^inactive_file (\d+)$", read("/sys/fs/cgroup/memory.stat"), re.MULTILINE
        )
        left = limit - used + (int(cached[1]) if cached else 0)
    sizes = [read_meminfo("MemAvailable"), left]
    return min((size for size in sizes if size is not None), default=None)


def read_meminfo(key: str) -> int | None:
    match = re.search(rf"^{key}: +(\d+) kB$", read("/proc/meminfo"), re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def read_number(path: str) -> int | None:
    """Return the number in a file; None if there is no file, or the word `max` in it."""
    return to_number(read(path))


def read(path: str) -> str:
    """Return the text of a file of the kernel; nothing if there is none."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def to_number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def find_fullest(run_folder: Path) -> tuple[Path, int]:
    """Return the folder around which least is free, and the free bytes."""
    kept = {"UV_CACHE_DIR": "uv", "HOMETOWN_CACHE_DIR": "hometown"}
    usual = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    caches = [os.environ.get(name) or f"{usual}/{folder}" for name, folder in kept.items()]
    folders = [CHECKOUT, run_folder, *(Path(os.path.expanduser(each)) for each in caches)]
    free = {folder: shutil.disk_usage(find_existing(folder)).free for folder in folders}
    fullest = min(free, key=lambda folder: free[folder])
    return fullest, free[fullest]


def find_existing(path: Path) -> Path:
    """Return the folder itself, or the nearest one above that exists and can be entered."""
    return next(folder for folder in (path, *path.parents) if os.path.exists(folder))


# Rights


def read_umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def list_closed_folders(run_folder: Path) -> list[Path]:
    """Return the folders which another user cannot enter, of those that PostgreSQL needs."""
    inside = [run_folder / "postgres", *VENV.glob("lib/*/site-packages/*/pginstall*/bin")]
    above = {folder for path in inside for folder in path.parents if folder.exists()}
    return sorted(folder for folder in above if not folder.stat().st_mode & stat.S_IXOTH)


# Ports


def get_run_folder(way: str) -> Path:
    """Return where the stack has its files, by the rule of infra/src/local_stack/settings.py."""
    root = CHECKOUT / ".run"
    given = os.environ.get("HOMETOWN_RUN_DIR")
    if given:
        return Path(os.path.expanduser(given)).resolve()
    return root if way == "processes" and (root / "postgres").exists() else root / way


def read_kept_ports(run_folder: Path) -> dict[str, int]:
    """Return those with which the stack was started the last time."""
    addresses = json.loads(read(str(run_folder / "addresses.json")) or "{}")
    return {name: int(address.rpartition(":")[2]) for name, address in addresses.items()}


def read_usual_ports(way: str) -> dict[str, int]:
    """Return the port of each process that has one on this machine."""
    ports = {
        **FOUNDATION_PORTS[way],
        **{
            name: process["port"]
            for name, process in list_processes()
            if is_published(process, way)
        },
    }
    return dict(sorted(ports.items(), key=lambda each: each[1]))


def is_published(process: Mapping[str, Any], way: str) -> bool:
    return way == "processes" or process.get("public", False)


def list_processes() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path in sorted(CHECKOUT.glob("*/service.toml")):
        with path.open("rb") as file:
            declared = tomllib.load(file)
        for command, process in declared["processes"].items():
            yield process.get("name", f"{declared['name']}-{command}"), process


def read_given_ports(names: Iterable[str]) -> dict[str, int | None]:
    """Return the ports that settings have for processes; None if it is none."""
    return {
        name: to_port(os.environ[port_variable(name)])
        for name in names
        if port_variable(name) in os.environ
    }


def to_port(text: str) -> int | None:
    with contextlib.suppress(ValueError):
        if (port := int(text)) in range(1, 2**16):
            return port
    return None


def list_unknown_ports(names: Iterable[str]) -> list[str]:
    """Return the settings of ports for other names than these."""
    known = {port_variable(name) for name in names}
    return sorted(
        name for name in os.environ if name.startswith(port_variable("")) and name not in known
    )


def is_free(port: int) -> bool:
    """Return whether no process listens there; old connections that linger do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def is_running(run_folder: Path, way: str) -> bool:
    """Return whether the stack of this checkout runs, or a part of it."""
    if way != "processes":
        mine = f"label=com.docker.compose.project.working_dir={CHECKOUT}"
        return bool(run("docker", "ps", "--quiet", "--filter", mine))
    try:
        os.kill(int(read(str(run_folder / "supervisord.pid"))), 0)
    except PermissionError:
        return True  # it is that of another user
    except (OSError, ValueError):
        return False
    return True
