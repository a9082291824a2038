"""`republish` in containers: the same steps, done by the engine."""

from collections.abc import Collection

from confluent_kafka.admin import AdminClient

from containers.compose import Project
from containers.secrets import PROXY
from containers.tools import run
from fetching.errors import Failure
from local_stack.hometown import HOMETOWN
from local_stack.republishing import REPUBLISH, Steps, delete_topics, republish_all
from local_stack.run_folder import RunFolder
from local_stack.stack_spec import Tier
from local_stack.status import as_found

SERVERS = ("postgres", "kafka")
SERVICES = frozenset(process.name for process in HOMETOWN.of(Tier.SERVICE))


class ContainerSteps(Steps):
    """Of a stack in containers; a service has all of its replicas in a cluster."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def demand_servers(self) -> None:
        found = self._project.containers()
        for name in SERVERS:
            if name not in found or not found[name].is_ready:
                again = f"`make up {self._project.way}`, then again"
                raise Failure(f"{name} does not run here: {again}")

    def stop_services(self) -> None:
        present = {each.service for each in self._project.containers().values()} & SERVICES
        self._call("stop", *sorted(present))

    def delete_topics(self) -> None:
        if self._project.settings.way == "cluster":
            # The administrator's certificate does not leave the secrets.
            self._run_once("access", "delete-topics")
        else:
            servers = as_found(self._project.settings).address("kafka")
            delete_topics(AdminClient({"bootstrap.servers": servers}))

    def prepare(self) -> None:
        self._run_once("topics")

    def run_tool(self, service: str, *arguments: str) -> None:
        if run(self._project, service, arguments) != 0:
            command = " ".join((service, *arguments))
            raise Failure(f"{command} failed: correct what it reports, then again")

    def start(self, names: Collection[str]) -> None:
        found = self._project.containers()
        self._project.start([name for name, each in found.items() if each.service in names])

    def start_all(self) -> None:
        """The containers that are there: nothing is built or replaced."""
        self.start([name for name, is_usual in self._project.servers().items() if is_usual])

    def _run_once(self, *words: str) -> None:
        self._call("run", "--rm", "--no-TTY", "--no-deps", *words)

    def _call(self, *words: str) -> None:
        if self._project.call(*words) != 0:
            raise Failure(f"docker compose {' '.join(words)} failed: correct what it reports")


def start_servers(project: Project) -> None:
    """Start the servers that the services depend on, and nothing else; `up` refuses to.

    Raises:
        Failure: they are not ready in time.
    """
    if project.call("up", "--no-start", profiles=()) != 0:
        raise Failure("the containers cannot be created: correct what docker compose reports")
    found = project.containers()
    needed = [name for name, is_usual in project.servers().items() if is_usual]
    others = {*SERVICES, PROXY}
    project.start([name for name in needed if found[name].service not in others])


def republish(project: Project) -> None:
    """See `republish_all`. Raises Failure."""
    if RunFolder(project.settings.run_dir).repair == REPUBLISH:
        start_servers(project)
    republish_all(ContainerSteps(project), as_found(project.settings))
