"""A stack of containers."""

import base64
import json
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import httpx

from containers.compose import Project
from containers.faults import kill_processes
from containers.footprint import footprint
from containers.up import find_project
from local_stack.settings import Way
from test_support.system.bytes_on_disk import files_with
from test_support.system.stack import CHECKOUT, Stack
from test_support.waits import HANGS_AFTER_SECONDS

REPLICA = re.compile(r"-\d+$")
"""The number of a container, at the end of its name."""

READ_METRICS = """\
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:8000/metrics").read().decode())
"""
"""Run in a container: most processes publish no port."""


@dataclass(frozen=True, slots=True)
class ContainerStack(Stack):
    way: ClassVar[Way] = "containers"

    @property
    def project(self) -> Project:
        return find_project(self.settings)

    def stop(self, names: Sequence[str]) -> None:
        self.project.output("stop", *names)

    def start(self, names: Sequence[str]) -> None:
        self.project.start(names)

    def run_inside(self, name: str, script: str) -> str:
        """Run a bash script in a container, and return what it prints."""
        return self.project.output("exec", "--no-TTY", name, "bash", "-c", script)

    def kill(self, name: str) -> None:
        project = self.project
        container = project.containers()[name]
        if container.state == "running":  # else it has just ended by itself
            kill_processes(project, container)

    def kill_everything(self) -> None:
        self.project.output("kill")

    def freeze(self, name: str) -> None:
        self.project.output("pause", name)

    def thaw(self, name: str) -> None:
        self.project.output("unpause", name)

    def lives(self) -> Mapping[str, str]:
        inspected = self._inspected()
        return {
            each["Config"]["Labels"]["com.docker.compose.service"]: each["State"]["StartedAt"]
            for each in inspected
            if each["State"]["Running"]
        }

    def memory_bytes(self, name: str) -> int:
        return next(each.used for each in footprint(self.project) if each.name == name)

    def read_metrics(self, name: str) -> str:
        """Read those of all replicas, one after the other. Raises httpx.ConnectError."""
        replicas = [
            each
            for each in self.project.containers().values()
            if each.service == name and each.state == "running"
        ]
        return "\n".join(self._read_metrics(each.id) for each in replicas)

    def _read_metrics(self, container: str) -> str:
        command = ["docker", "exec", container, "python", "-c", READ_METRICS]
        ended = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=HANGS_AFTER_SECONDS
        )
        if ended.returncode:
            raise httpx.ConnectError(ended.stderr)
        return ended.stdout

    def logs(self) -> Mapping[str, str]:
        """Read those of the replicas of a process as one."""
        texts: dict[str, list[str]] = defaultdict(list)
        for label, text in self.project.log_lines():
            texts[REPLICA.sub("", label)].append(text)
        return {name: "\n".join(lines) for name, lines in texts.items()}

    def process_listing(self) -> str:
        return json.dumps(self._inspected()) + self.project.output("top")

    def files_with(self, wanted: Sequence[bytes]) -> set[str]:
        """Those of the volumes, searched while the servers use them."""
        containers = self.project.containers()
        volumes = [f"--volumes-from={containers[name].id}:ro" for name in ("postgres", "kafka")]
        script = "/bytes_on_disk.py"
        ended = subprocess.run(
            [
                *("docker", "run", "--rm", "--interactive", "--pull=never"),
                *("--user=0", "--network=none", *volumes),
                f"--volumes-from={containers['analytics-job'].id}:ro",
                f"--volume={CHECKOUT / 'test_support/system' / script[1:]}:{script}:ro",
                *("--entrypoint=python", "hometown/infra", script, "/var/lib"),
            ],
            input="\n".join(base64.b64encode(each).decode() for each in wanted),
            capture_output=True,
            text=True,
            check=True,
            timeout=HANGS_AFTER_SECONDS,
        )
        with tempfile.TemporaryDirectory() as folder:
            for name, text in self.logs().items():
                (Path(folder) / f"{name}.log").write_text(text)
            return {*ended.stdout.splitlines(), *files_with(Path(folder), wanted)}

    def exported(self) -> Path:
        self.project.output("cp", "analytics-job:/var/lib/hometown/export", str(self.folder.path))
        return self.folder / "export"

    def demand_jaeger(self) -> None:
        assert self.project.containers()["jaeger"].state == "running"

    def _inspected(self) -> list[dict[str, Any]]:
        ids = [container.id for container in self.project.containers().values()]
        inspected: list[dict[str, Any]] = (
            json.loads(self.project.docker("inspect", *ids)) if ids else []
        )
        return inspected
