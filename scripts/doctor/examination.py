"""All checks: what the machine returns, judged."""

import platform
import resource
import sys
from collections.abc import Iterator

from scripts.doctor import judging, machine
from scripts.doctor.judging import GIT_MIN, MAKE_MIN, Finding
from scripts.doctor.machine import CHECKOUT, read_version


def examine(way: str) -> Iterator[Finding]:
    """All checks, the cheap and fundamental ones first."""
    installed = (CHECKOUT / ".venv" / "bin" / "python").exists()
    run_folder = machine.read_run_folder(way)
    addresses = machine.read_addresses(run_folder)
    holders = {
        port: machine.find_holder(port) for port in addresses.values() if not machine.is_free(port)
    }
    runs = any(holder and holder.stack == str(run_folder) for holder in holders.values())
    yield judging.judge_system(platform.system(), platform.machine(), machine.is_musl())
    yield judging.judge_python(
        sys.version_info[:3],
        machine.has_venv(),
        has_uv=(CHECKOUT / ".tools" / "bin" / "uv").exists(),
    )
    yield judging.judge_program("make", read_version("make", "--version"), MAKE_MIN, "GNU Make")
    yield judging.judge_program("git", read_version("git", "--version"), GIT_MIN, "git")
    yield judging.judge_java(
        machine.read_java_version(), installed, machine.run_java() if installed else ""
    )
    yield judging.judge_docker(
        read_version("docker", "version", "--format", "{{.Server.Version}}"),
        read_version("docker", "compose", "version", "--short"),
        way,
    )
    yield judging.judge_memory(machine.read_memory(), machine.read_available_memory(), way, runs)
    yield judging.judge_cores(machine.count_cores())
    yield judging.judge_disk(machine.read_free_disk(), installed)
    yield judging.judge_ports(addresses, holders, run_folder, machine.read_given_ports())
    yield judging.judge_open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    yield judging.judge_watches(machine.read_number("/proc/sys/fs/inotify/max_user_watches"))
    yield judging.judge_wsl(platform.release(), CHECKOUT)
    yield judging.judge_line_endings(
        machine.run("git", "config", "core.autocrlf"),
        (CHECKOUT / ".gitattributes").exists(),
        machine.find_files_with_carriage_returns(),
    )
