"""The listening socket of a server, which outlives the program that accepts its connections.

A process that is replaced executes its own command again and passes the socket on, by the protocol
of systemd's socket activation: clients that connect meanwhile wait in the kernel's queue.
"""

import os
import socket
import sys
from typing import NoReturn

FIRST_FD = 3
"""The file descriptor of the first socket that is passed on: systemd's SD_LISTEN_FDS_START."""
PROCESS, COUNT = "LISTEN_PID", "LISTEN_FDS"
BACKLOG_CONNECTIONS_MAX = 2048
"""Connections that wait to be accepted; the kernel may have a lower limit."""


def listen(host: str, port: int) -> socket.socket:
    """The socket that was passed to this process, or else a new one that listens there.

    Raises:
        OSError: the address cannot be used.
    """
    if os.environ.get(PROCESS) == str(os.getpid()) and os.environ.get(COUNT) == "1":
        os.set_inheritable(FIRST_FD, False)
        return socket.socket(fileno=FIRST_FD)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG_CONNECTIONS_MAX)


def replace_process(listening: socket.socket) -> NoReturn:
    """Execute the command of this process again, in the same process, with the socket."""
    if listening.fileno() != FIRST_FD:
        os.dup2(listening.fileno(), FIRST_FD)
    os.set_inheritable(FIRST_FD, True)
    environment = os.environ | {PROCESS: str(os.getpid()), COUNT: "1"}
    command = [sys.executable, *sys.orig_argv[1:]]
    os.execve(sys.executable, command, environment)  # noqa: S606
