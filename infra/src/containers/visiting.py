"""The brokers as people reach them from this machine."""

from containers.access import VISITOR
from containers.compose import REPLICAS, Project
from containers.up import ports_of
from fetching.errors import Failure
from local_stack.kafka_tools import TOOLS
from local_stack.run_folder import RunFolder, read_json
from local_stack.stack_spec import HOST
from shared.runtime.brokers import Brokers, Login

BROKERS = ("kafka", *(port.name for port in REPLICAS))


def find_brokers(project: Project) -> Brokers:
    """Those that run. Raises Failure: there are none."""
    ports = ports_of(project)
    servers = ",".join(f"{HOST}:{ports[name]}" for name in BROKERS if name in ports)
    if not servers:
        raise Failure(f"nothing runs here: `make up {project.way}`, then again")
    if project.settings.way == "cluster":
        return Brokers(servers, log_in(RunFolder(project.settings.run_dir)))
    return Brokers(servers)


def log_in(folder: RunFolder) -> Login:  # part: cluster
    password = read_json(folder.secrets)[VISITOR]
    return Login(username=VISITOR, password=password, ca_file=folder.authority)


def require_connected(tool: str) -> None:
    """Raises Failure: the tool reads the files of a broker, which are in a volume."""
    if tool in TOOLS and TOOLS[tool].servers_option is None:
        raise Failure(
            f"{tool} reads files of a broker, which are in a volume here: docker compose exec"
            f" kafka /opt/kafka/bin/kafka-{tool}.sh"
        )
