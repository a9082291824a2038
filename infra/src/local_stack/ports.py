"""Which port each process listens on: the usual one, the requested one, or a free one."""

import contextlib
import fcntl
import functools
import os
import random
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import psutil

from fetching.errors import Failure
from local_stack.run_folder import RunFolder, read_json, write_json
from local_stack.settings import PORT_PREFIX, variable
from local_stack.stack_spec import HOST, Port, StackContext

FREE_PORTS = range(20_000, 30_000)
"""Below the range from which kernels take the ports of outgoing connections."""

ATTEMPTS_MAX = 200


def choose(
    wanted: Sequence[Port],
    *,
    given: Mapping[str, int],
    kept: Mapping[str, int],
    prefer_default: bool,
    tell: Callable[[str], None],
) -> dict[str, int]:
    """A port for each name: the given one, else the kept one, else the usual one, else a free one.

    Raises:
        Failure: a given port is taken, or no free one was found.
    """
    chosen: dict[str, int] = {}
    for port in wanted:
        taken = set(chosen.values()) | (set(given.values()) - {given.get(port.name)})
        if port.name in given:
            chosen[port.name] = insist(port.name, given[port.name])
            continue
        usual = port.default if prefer_default else None
        candidate = kept.get(port.name, usual)
        if candidate is None or candidate in taken or not is_free(candidate):
            chosen[port.name] = find_free(taken)
            if candidate is not None:
                tell(f"port {candidate} is taken, {port.name} uses {chosen[port.name]}")
        else:
            chosen[port.name] = candidate
    return chosen


def demand_known(given: Mapping[str, int], ports: Sequence[Port]) -> None:
    """Raises Failure if a port is requested under an unknown name."""
    names = [port.name for port in ports]
    for name in sorted(given.keys() - set(names)):
        raise Failure(
            f"{variable(PORT_PREFIX, name)} names no port: choose one of {', '.join(names)}"
        )


def demand_unchanged(given: Mapping[str, int], kept: Mapping[str, int]) -> None:
    """Raises Failure if other ports are requested for a stack that runs."""
    for name, port in given.items():
        if name in kept and kept[name] != port:
            raise Failure(
                f"{name} already runs on port {kept[name]}: `make down`, then `make up` moves it"
            )


def insist(name: str, port: int) -> int:
    """The port itself.

    Raises:
        Failure: it is taken.
    """
    if not is_free(port):
        raise Failure(
            f"port {port} for {name} is taken{holder_of(port)}: "
            f"stop that or change {variable(PORT_PREFIX, name)}"
        )
    return port


def is_free(port: int) -> bool:
    """Whether no process listens there; old connections that linger do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def find_free(taken: AbstractSet[int] = frozenset()) -> int:
    """A free port that no other process of this user chooses before this one ends.

    Raises:
        Failure: none was found in ATTEMPTS_MAX attempts.
    """
    # From the system's source: with Python's own, seeded, two test workers choose alike.
    for port in random.SystemRandom().sample(FREE_PORTS, ATTEMPTS_MAX):
        if port not in taken and is_free(port) and reserve(port):
            return port
    raise Failure(f"no free port between {FREE_PORTS.start} and {FREE_PORTS.stop}: stop something")


def reserve(port: int) -> bool:
    """Whether this process has the port now, of all that choose one before they listen on it."""
    try:
        fcntl.lockf(reservations(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except BlockingIOError:
        return False
    return True


@functools.cache
def reservations() -> int:
    """A file in which each port has a byte to lock, open: closing it releases all locks."""
    path = Path(tempfile.gettempdir()) / f"hometown-ports-{os.getuid()}"
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def holder_of(port: int) -> str:
    """The process that listens there, as ` by name (pid 1)`; empty if it is not known."""
    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,)
            if listens and connection.pid:
                return f" by {psutil.Process(connection.pid).name()} (pid {connection.pid})"
    return ""


def load(folder: RunFolder) -> dict[str, int]:
    """The ports of addresses.json; none if there is no such file."""
    addresses: dict[str, str] = read_json(folder.addresses) or {}
    return {name: int(address.rpartition(":")[2]) for name, address in addresses.items()}


def save(context: StackContext, ports: Sequence[Port]) -> None:
    write_json(context.folder.addresses, {port.name: port.address(context) for port in ports})
