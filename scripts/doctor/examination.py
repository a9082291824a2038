"""All checks: what the machine returns, judged."""

import locale
import os
import platform
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from scripts.doctor import judging, machine
from scripts.doctor.judging import NOTE, Finding
from scripts.setup import CHECKOUT, TOOLS, VENV


def examine(way: str) -> Iterator[Finding]:
    """Yield the finding of each check. What cannot be looked at hinders no other check."""
    for check, look in list_checks(way).items():
        try:
            yield look()
        except Exception as error:
            reason = str(error).partition("\n")[0]
            yield Finding(NOTE, check, f"not examined ({type(error).__name__}: {reason})")


def list_checks(way: str) -> Mapping[str, Callable[[], Finding]]:
    """Return how each check finds, the cheap and fundamental ones first."""
    is_installed = (VENV / "bin/python").exists()
    run_folder = machine.get_run_folder(way)
    runs = cache(lambda: machine.is_running(run_folder, way))
    return {
        "system": lambda: judging.judge_system(
            platform.system(), platform.machine(), has_musl=machine.has_musl()
        ),
        "wsl": lambda: judging.judge_wsl(platform.release(), CHECKOUT),
        "python": lambda: judging.judge_python(
            sys.version_info[:3], has_venv=machine.has_venv(), has_uv=(TOOLS / "bin/uv").exists()
        ),
        "make": lambda: judging.judge_make(machine.read_version("make", "--version")),
        "git": lambda: judging.judge_git(machine.read_version("git", "--version")),
        "docker": lambda: judging.judge_docker(
            machine.read_version("docker", "version", "--format", "{{.Server.Version}}"),
            machine.read_version("docker", "compose", "version", "--short"),
            way,
        ),
        "cores": lambda: judging.judge_cores(machine.count_cores()),
        "memory": lambda: judging.judge_memory(
            machine.read_memory(), machine.read_available_memory(), way, runs=runs()
        ),
        "disk": lambda: judging.judge_disk(
            *machine.find_fullest(run_folder), is_installed=is_installed
        ),
        "open files": lambda: judging.judge_open_files(
            resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        ),
        "watches": lambda: judging.judge_watches(
            machine.read_number("/proc/sys/fs/inotify/max_user_watches")
        ),
        "path": lambda: judging.judge_path(CHECKOUT),
        "umask": lambda: judging.judge_access(
            machine.read_umask(),
            machine.list_closed_folders(run_folder) if is_root(way) else [],
            is_new_for_root=is_root(way) and not (is_installed and run_folder.exists()),
        ),
        "locale": lambda: judging.judge_locale(locale.getpreferredencoding(False)),
        "proxies": lambda: judging.judge_proxies(os.environ),
        "ports": lambda: look_at_ports(way, run_folder, runs=runs()),
    }


def is_root(way: str) -> bool:
    """Return whether root starts PostgreSQL, as in no container."""
    return way == "processes" and os.geteuid() == 0


def look_at_ports(way: str, run_folder: Path, *, runs: bool) -> Finding:
    """Look at the port of each process: the requested, else the last, else the usual one."""
    usual = machine.read_usual_ports(way)
    given = machine.read_given_ports(usual)
    kept = machine.read_kept_ports(run_folder)
    wanted = {} if os.environ.get("HOMETOWN_PORTS") == "free" else usual
    ports = wanted | kept | {name: port for name, port in given.items() if port is not None}
    taken = {port for port in ports.values() if not machine.is_free(port)}
    own = taken & {*kept.values()} if runs else set()
    return judging.judge_ports(
        ports, taken - own, own, given, unknown=machine.list_unknown_ports(usual)
    )
