"""A stack of processes under a supervisor."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import httpx
import psutil

from local_stack import orphans, supervision
from local_stack.hometown import HOMETOWN
from local_stack.jaeger import read_note
from local_stack.readiness import wait_until_ready
from local_stack.settings import Way
from local_stack.status import as_found
from test_support.system.bytes_on_disk import files_with
from test_support.system.eventually import eventually
from test_support.system.stack import Stack
from test_support.waits import HANGS_AFTER_SECONDS


@dataclass(frozen=True, slots=True)
class ProcessStack(Stack):
    way: ClassVar[Way] = "processes"

    def stop(self, names: Sequence[str]) -> None:
        for name in names:
            supervision.stop(self.folder, name)
        eventually(
            lambda: {self._programs()[name].state for name in names},
            lambda states: states <= {"STOPPED", "EXITED"},
            what=f"{names} stopped",
        )

    def start(self, names: Sequence[str]) -> None:
        processes = {process.name: process for process in HOMETOWN.processes}
        for name in names:
            supervision.start(self.folder, name)
        for name in names:
            process = processes[name]
            context = as_found(self.settings)
            asyncio.run(wait_until_ready(context, process, process.ready_seconds_max))

    def kill(self, name: str) -> None:
        if pid := self._programs()[name].pid:
            with suppress(psutil.NoSuchProcess):  # it has just ended by itself
                psutil.Process(pid).kill()

    def kill_everything(self) -> None:
        for process in orphans.find(self.folder):
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def freeze(self, name: str) -> None:
        psutil.Process(self._programs()[name].pid).suspend()

    def thaw(self, name: str) -> None:
        psutil.Process(self._programs()[name].pid).resume()

    def lives(self) -> Mapping[str, str]:
        programs = self._programs()
        if not programs:  # they may have lost their supervisor
            return {str(process.pid): str(process.pid) for process in orphans.find(self.folder)}
        return {name: str(program.pid) for name, program in programs.items() if program.pid}

    def memory_bytes(self, name: str) -> int:
        return int(psutil.Process(self._programs()[name].pid).memory_info().rss)

    def read_metrics(self, name: str) -> str:
        url = f"http://{as_found(self.settings).address(name)}/metrics"
        return httpx.get(url, timeout=HANGS_AFTER_SECONDS).raise_for_status().text

    def logs(self) -> Mapping[str, str]:
        files = (self.folder / "logs").glob("*.log")
        return {file.stem: file.read_text(errors="replace") for file in files}

    def process_listing(self) -> str:
        lines = [" ".join(process.cmdline()) for process in orphans.find(self.folder)]
        return "\n".join(lines)

    def files_with(self, wanted: Sequence[bytes]) -> set[str]:
        return files_with(self.folder.path, wanted)

    def exported(self) -> Path:
        return self.folder / "export"

    def demand_jaeger(self) -> None:
        assert not self._programs()["jaeger"].is_at_rest, read_note(self.folder)

    def _programs(self) -> Mapping[str, supervision.Program]:
        return supervision.programs(self.folder) or {}
