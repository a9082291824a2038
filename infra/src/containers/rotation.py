"""`rotate`: a new key of the issuer, or new certificates, in a stack that goes on working."""

from collections.abc import Sequence

from containers import rolling, secrets
from containers.compose import APIS, Container, Project
from containers.up import take_out
from fetching.errors import Failure
from local_stack import issuer
from local_stack.postgres import SUPERUSER
from local_stack.progress import tell
from local_stack.run_folder import RunFolder

BROKERS = ("kafka", "kafka-2", "kafka-3")

RENEW_IN_PROXY = """
import socket
file = "/run/secrets/certificate.pem"
with open(file) as opened:
    certificate = opened.read().strip()
for command in (f"set ssl cert {file} <<\\n{certificate}\\n", f"commit ssl cert {file}"):
    with socket.create_connection(("127.0.0.1", 8009), 10) as connection:
        connection.sendall(f"{command}\\n".encode())
        answer = b"".join(iter(lambda: connection.recv(4096), b"")).decode().strip()
if not answer.endswith("Success!"):
    raise SystemExit(answer)
"""
"""The proxy takes it over while it serves. It knows a certificate by the name of its file."""

RENEW_IN_POSTGRES = "bash /etc/hometown/install_certificate.sh && kill -HUP 1"
"""The server reads it for new connections; process 1 hands the signal on."""


def rotate(project: Project, what: str, hours: float) -> None:
    """APIs read new keys of the issuer by themselves; PostgreSQL and the proxy take over a new
    certificate while they serve, and everything else that has one starts again, one container at a
    time.

    Raises:
        Failure: nothing runs here, the engine does not answer, or a container is not ready again.
    """
    folder = RunFolder(project.settings.run_dir)
    folder.demand(project.settings.way)
    if not project.ports:
        raise Failure(f"nothing runs here: `make up {project.way}`, then again")
    with folder.locked():
        project.output("run", "--rm", "--no-TTY", "secrets", "rotate", what, "--hours", f"{hours}")
        take_out(project, folder)
        if what == issuer.CERTIFICATES:
            for name, container in find_certified(project):
                renew(project, container)
                tell(f"{name} has a new certificate")


def renew(project: Project, container: Container) -> None:
    """Let a container use its new certificate, without a restart where it can."""
    if container.service == secrets.PROXY:
        project.docker("exec", container.id, "python", "-c", RENEW_IN_PROXY)
    elif container.service == SUPERUSER:
        project.docker("exec", container.id, "bash", "-c", RENEW_IN_POSTGRES)
    else:
        rolling.restart(project, container)


def find_certified(project: Project) -> Sequence[tuple[str, Container]]:
    """The running containers that use a certificate, by their names."""
    certified = {
        *((*APIS, secrets.PROXY, SUPERUSER) if project.settings.has_tls else ()),
        *(BROKERS if project.settings.way == "cluster" else ()),
    }
    return [
        (name, container)
        for name, container in project.containers().items()
        if container.service in certified and container.state == "running"
    ]
