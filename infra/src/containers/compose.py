"""Calls of `docker compose` for one stack: its project, and the ports that people use."""

import hashlib
import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fetching.errors import Failure
from local_stack.hometown import HOMETOWN
from local_stack.order_log import LoggedLine
from local_stack.run_folder import RunFolder, write_atomically
from local_stack.settings import CHECKOUT, PORT_PREFIX, Settings, usual_run_dir, variable
from local_stack.stack_spec import Port
from shared.runtime.declarations import load_declarations

PROFILES = {
    process.name: process.profile
    for process in load_declarations().processes
    if process.profile is not None
}
"""The profile of each process that starts on request."""

APIS = tuple(process.name for process in load_declarations().processes if process.public)
"""They serve https in a stack with TLS."""

OUTSIDE = (
    *("postgres", "kafka", "jaeger"),
    *APIS,
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

CLUSTER_FILE = "docker-compose.cluster.yml"

PROJECT_FILE = "project"
"""The name of the project whose volumes belong to the run folder."""

SERVER_RESTART = "unless-stopped"
"""The restart policy of `x-until-stopped` in infra/compose/common.yml, and of nothing else."""

ERASE_LINE = "\033[2K"
"""Compose 2.26 writes it in front of lines, also where there is no terminal."""

OUTPUT_SECONDS_MAX = 60
START_SECONDS_MAX = 300
"""On a machine with other work the job needs two minutes; its health check gives it five."""
POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What the engine reports of the container of one process; words such as `running`, `healthy`.

    The second and further ones of a service have a number behind its name: their rank, not the
    number in the name of the container, which is a new one whenever a container is replaced.
    """

    process: str
    service: str
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
    def name(self) -> str:
        """The given name, or one for the run folder: no other checkout or way has the same."""
        digest = hashlib.sha256(os.fsencode(self.settings.run_dir)).hexdigest()[:12]
        return self.given_name or f"hometown-{digest}"

    @property
    def given_name(self) -> str | None:
        """The name that is set for the checkout's own stack, if there is one.

        A run folder that was chosen has a project of its own in any case, and so has a cluster,
        whose volumes no other stack can open.
        """
        settings = self.settings
        if settings.compose_project is None or settings.run_dir != usual_run_dir(settings.way):
            return None
        return settings.compose_project + ("-cluster" if settings.way == "cluster" else "")

    @property
    def way(self) -> str:
        """What people add to `make` for this stack."""
        return f"in={self.settings.way}"

    @property
    def environment(self) -> Mapping[str, str]:
        chosen = {variable(PORT_PREFIX, name): str(number) for name, number in self.ports.items()}
        file = CLUSTER_FILE if self.settings.way == "cluster" else self.settings.compose_file
        return {
            **os.environ,
            **chosen,
            "COMPOSE_PROJECT_NAME": self.name,
            **({"COMPOSE_FILE": file} if file else {}),
            "HOMETOWN_IMAGES": self.settings.images,
            "HOMETOWN_TLS": self.settings.tls,
            "HOMETOWN_DEMO": "0",  # `make demo` shows the sample
        }

    @property
    def published(self) -> Sequence[Port]:
        """PUBLISHED, with the schemes of this stack."""
        if not self.settings.has_tls:
            return PUBLISHED
        return [
            replace(port, scheme="https://") if port.name in APIS else port for port in PUBLISHED
        ]

    def demand_own(self, folder: RunFolder) -> None:
        """Check that no other checkout has containers or volumes under a name that was given.

        Raises:
            Failure: one has, or the engine does not answer.
        """
        if self.given_name is None:
            return
        project = ("--filter", f"label=com.docker.compose.project={self.name}")
        checkout = '{{.Label "com.docker.compose.project.working_dir"}}'
        checkouts = self.docker("ps", "--all", *project, "--format", checkout).splitlines()
        if others := set(checkouts) - {str(CHECKOUT), ""}:
            raise Failure(
                f"the project {self.name} runs {others.pop()}: choose another COMPOSE_PROJECT_NAME"
            )
        claimed = folder / PROJECT_FILE
        is_ours = str(CHECKOUT) in checkouts or (
            claimed.exists() and claimed.read_text() == self.name
        )
        if not is_ours and self.docker("volume", "ls", "--quiet", *project).strip():
            raise Failure(
                f"the project {self.name} has volumes that this checkout has not made: choose "
                "another COMPOSE_PROJECT_NAME, or take them over with "
                f"`docker compose -p {self.name} up --wait`"
            )

    def claim(self, folder: RunFolder) -> None:
        """As `demand_own`; from now on, the volumes are those of this run folder."""
        self.demand_own(folder)
        write_atomically(folder / PROJECT_FILE, self.name)

    def call(self, *words: str, profiles: Sequence[str] = EVERY) -> int:
        """Run `docker compose` in front of the caller; its exit status."""
        return self._run(self._compose(words, profiles)).returncode

    def output(self, *words: str) -> str:
        """What `docker compose` writes to standard output. Raises Failure if it fails."""
        return self._output(self._compose(words, EVERY))

    def log_lines(self, *words: str) -> Iterator[LoggedLine]:
        """Yield lines that the containers have logged, as they come: by default, all there are.

        Raises:
            Failure: there is no Docker, or it fails.
        """
        try:
            reading = subprocess.Popen(
                self._compose(["logs", "--no-color", *words], EVERY),
                cwd=CHECKOUT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        except FileNotFoundError:
            raise self._no_docker() from None
        with reading:
            assert reading.stdout is not None
            for line in reading.stdout:
                name, _, text = line.rstrip("\n").partition("| ")
                yield LoggedLine(name.replace(ERASE_LINE, "").strip(), text)
        if reading.returncode:
            raise Failure("docker failed: correct what it reports")

    def _no_docker(self) -> Failure:
        return Failure(f"there is no docker here: install it, or leave out {self.way}")

    def docker(self, *words: str) -> str:
        """The same of `docker`."""
        return self._output(["docker", *words])

    def containers(self) -> dict[str, Container]:
        """Those of processes and of what ran once, by the name of each.

        Raises:
            Failure: the engine does not answer.
        """
        output = self.output("ps", "--all", "--format", "json")
        lines = sorted(map(json.loads, output.splitlines()), key=number_of)
        ranks: Counter[str] = Counter()
        found = []
        for line in lines:
            ranks[line["Service"]] += 1
            found.append(as_container(line, ranks[line["Service"]]))
        return {container.process: container for container in found}

    def declared(self) -> dict[str, Any]:
        """The services of the Compose files, as `docker compose config` shows them.

        Raises:
            Failure: the files are malformed.
        """
        services: dict[str, Any] = json.loads(self.output("config", "--format", "json"))["services"]
        return services

    def servers(self) -> dict[str, bool]:
        """Each container that runs until it is stopped, and whether it starts with the others.

        They are those of the Compose files, whether the engine has them or not.

        Raises:
            Failure: the files are malformed.
        """
        return {
            name_replica(name, number): not service.get("profiles")
            for name, service in self.declared().items()
            if service.get("restart") == SERVER_RESTART
            for number in range(1, service.get("deploy", {}).get("replicas", 1) + 1)
        }

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
            raise self._no_docker() from None
        except subprocess.TimeoutExpired:
            raise Failure("docker does not answer: is its engine up?") from None


def name_replica(service: str, rank: int) -> str:
    return service if rank == 1 else f"{service}-{rank}"


def number_of(line: Mapping[str, Any]) -> int:
    """The number at the end of a container's name."""
    return int(line["Name"].rpartition("-")[2])


def as_container(line: Mapping[str, Any], rank: int) -> Container:
    """From one line of `docker compose ps`."""
    published = [each["PublishedPort"] for each in line["Publishers"] or ()]
    return Container(
        process=name_replica(line["Service"], rank),
        service=line["Service"],
        id=line["ID"],
        state=line["State"],
        health=line["Health"],
        exit_status=line["ExitCode"],
        port=next((port for port in published if port), None),
    )
