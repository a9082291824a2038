"""Calls of `docker compose` for one stack: its project, and the ports that people use."""

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fetching.errors import Failure
from local_stack import ports
from local_stack.hometown import HOMETOWN
from local_stack.settings import CHECKOUT, Settings
from local_stack.stack_spec import Port
from shared.runtime.declarations import load_declarations

PROFILES = {
    process.name: process.profile
    for process in load_declarations().processes
    if process.profile is not None
}
"""The profile of each process that starts on request."""

OUTSIDE = (
    *("postgres", "kafka", "jaeger"),
    *(process.name for process in load_declarations().processes if process.public),
)
"""What people reach; everything else is only for the other containers."""

REPLICAS = (Port(name="kafka-2", default=19093), Port(name="kafka-3", default=19094))
"""The further brokers of a cluster."""

PUBLISHED: Sequence[Port] = [
    *(port for port in HOMETOWN.ports if port.name in OUTSIDE),
    *REPLICAS,
]

EVERY = ("*",)
"""All profiles: a process that is stopped, shown or removed can have been requested at any time."""

OUTPUT_SECONDS_MAX = 60
START_SECONDS_MAX = 120
POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What the engine reports of the container of one process; words such as `running`, `healthy`.

    The second and further ones of a process have a number behind its name.
    """

    process: str
    id: str
    state: str
    health: str
    exit_status: int
    port: int | None

    @property
    def is_ready(self) -> bool:
        return self.state == "running" and self.health in ("healthy", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A stack as `docker compose` knows it; `ports` are the published ones by their names."""

    settings: Settings
    ports: Mapping[str, int]

    @property
    def name(self) -> str | None:
        """None for the usual stack of a checkout: its name is in docker-compose.yml."""
        run_dir = self.settings.run_dir
        if run_dir == CHECKOUT / ".run":
            return None
        return f"hometown-{hashlib.sha256(os.fsencode(run_dir)).hexdigest()[:12]}"

    @property
    def way(self) -> str:
        """What people add to `make` for this stack."""
        return "in=cluster" if self.settings.compose_file else "in=containers"

    @property
    def environment(self) -> Mapping[str, str]:
        chosen = {ports.variable(name): str(number) for name, number in self.ports.items()}
        name = {} if self.name is None else {"COMPOSE_PROJECT_NAME": self.name}
        file = self.settings.compose_file
        return {**os.environ, **name, **chosen, **({"COMPOSE_FILE": file} if file else {})}

    def call(self, *words: str, profiles: Sequence[str] = EVERY) -> int:
        """Run `docker compose` in front of the caller; its exit status."""
        return self._run(self._compose(words, profiles)).returncode

    def output(self, *words: str) -> str:
        """What `docker compose` writes to standard output. Raises Failure if it fails."""
        return self._output(self._compose(words, EVERY))

    def docker(self, *words: str) -> str:
        """The same of `docker`."""
        return self._output(["docker", *words])

    def containers(self) -> dict[str, Container]:
        """Those of processes and of what ran once, by the name of each.

        Raises:
            Failure: the engine does not answer.
        """
        lines = self.output("ps", "--all", "--format", "json").splitlines()
        found = [as_container(json.loads(line)) for line in lines]
        return {container.process: container for container in found}

    def start(self, names: Sequence[str]) -> None:
        """Start containers that are there, and wait until they are ready.

        Not by `up`, which recreates a container when the others are left out; nor by
        Compose's `start`, which first runs again what runs once.

        Raises:
            Failure: they are not ready after START_SECONDS_MAX.
        """
        found = self.containers()
        self.docker("start", *(found[name].id for name in names))
        self.wait_until_ready(names)

    def wait_until_ready(self, names: Sequence[str]) -> None:
        """Raises Failure after START_SECONDS_MAX."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while not all(self.containers()[name].is_ready for name in names):
            if time.monotonic() > deadline:
                raise Failure(f"{', '.join(names)}: not ready after {START_SECONDS_MAX} s")
            time.sleep(POLL_SECONDS)

    def _compose(self, words: Sequence[str], profiles: Sequence[str]) -> list[str]:
        chosen = [word for profile in profiles for word in ("--profile", profile)]
        return ["docker", "compose", *chosen, *words]

    def _output(self, command: Sequence[str]) -> str:
        ended = self._run(command, capture_output=True, timeout=OUTPUT_SECONDS_MAX)
        if ended.returncode:
            raise Failure(
                "docker failed: correct what it reports", details=ended.stderr.splitlines()
            )
        return str(ended.stdout)

    def _run(self, command: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[str]":
        """Raises Failure if there is no Docker, or if it does not answer in time."""
        try:
            return subprocess.run(
                command,
                cwd=CHECKOUT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                text=True,
                check=False,
                **options,
            )
        except FileNotFoundError:
            raise Failure(f"there is no docker here: install it, or leave out {self.way}") from None
        except subprocess.TimeoutExpired:
            raise Failure("docker does not answer: is its engine up?") from None


def as_container(line: Mapping[str, Any]) -> Container:
    """From one line of `docker compose ps`."""
    published = [each["PublishedPort"] for each in line["Publishers"] or ()]
    number = line["Name"].rpartition("-")[2]
    return Container(
        process=line["Service"] if number == "1" else f"{line['Service']}-{number}",
        id=line["ID"],
        state=line["State"],
        health=line["Health"],
        exit_status=line["ExitCode"],
        port=next((port for port in published if port), None),
    )
